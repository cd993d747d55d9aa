// SPDX-License-Identifier: MIT
// published_hosts TABLE: fits the hosts of a published table on its fit rows and prints the mapping file of them
// (validation/published/README.md).
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "validation/compare/published_hosts.hpp"

int main(int argc, char** argv) {
  using namespace voltaic;
  if (argc != 2) {
    std::fputs("usage: published_hosts TABLE.csv\n", stderr);
    return 2;
  }
  try {
    const auto table = validation::CsvTable::read(argv[1]);
    const auto kind = validation::published_table(table);
    if (!kind) {
      std::fputs("published_hosts: expected a published table\n", stderr);
      return 3;
    }
    const std::string source(validation::source_of(*kind));
    Runner runner;
    const auto hosts = validation::fit_hosts(validation::host_samples(runner, table, *kind));
    std::fputs(validation::hosts_file(source, hosts).c_str(), stdout);
  } catch (const std::exception& e) {
    fmt::print(stderr, "published_hosts: {}\n", e.what());
    return 1;
  }
  return 0;
}
