// SPDX-License-Identifier: MIT
// Checks that includes only fall: a file may include its own folder and folders on lower floors.
// usage: check_layers SOURCE_DIR
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Floor {
  std::string folder;
  int level;
};

// docs/architecture.md holds the same table for people. Longest prefix wins.
const std::vector<Floor> kFloors{
    {"arch/units/", 0}, {"arch/", 1},        {"sim/graph/", 1},  {"sim/engine/", 1},       {"sim/kernel/", 2},
    {"workloads/", 2},  {"sim/sm/", 3},      {"sim/memory/", 3}, {"sim/interconnect/", 3}, {"sim/cost/", 4},
    {"sim/cycle/", 4},  {"sim/runtime/", 5}, {"sim/report/", 6}, {"sim/study/", 8},        {"sim/", 7},
    {"validation/", 8}, {"tools/", 9},       {"tests/", 10},
};

const Floor* floor_of(const std::string& path) {
  const Floor* best = nullptr;
  for (const auto& f : kFloors) {
    if (path.rfind(f.folder, 0) == 0 && (best == nullptr || f.folder.size() > best->folder.size())) best = &f;
  }
  return best;
}

/// The path between the quotes of an #include line, or empty.
std::string quoted_include(const std::string& line) {
  const auto hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return "";
  const auto open = line.find('"');
  const auto close = open == std::string::npos ? open : line.find('"', open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

int check_file(const fs::path& root, const fs::path& file) {
  const std::string name = fs::relative(file, root).generic_string();
  const Floor* own = floor_of(name);
  if (own == nullptr) return 0;
  int faults = 0;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string target = quoted_include(line);
    const Floor* other = floor_of(target);
    if (other == nullptr || other->folder == own->folder || other->level < own->level) continue;
    std::cerr << name << ":" << number << ": floor " << own->level << " (" << own->folder << ") includes " << target
              << " on floor " << other->level << "\n";
    ++faults;
  }
  return faults;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: check_layers SOURCE_DIR\n";
    return 2;
  }
  const fs::path root = argv[1];
  int files = 0;
  int faults = 0;
  for (const char* top : {"arch", "sim", "workloads", "validation", "tools", "tests"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cu" && extension != ".cuh") continue;
      ++files;
      faults += check_file(root, entry.path());
    }
  }
  std::cout << files << " files checked, " << faults << " includes against the arrows\n";
  return faults == 0 && files > 0 ? 0 : 1;
}
