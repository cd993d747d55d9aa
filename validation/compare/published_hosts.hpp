// SPDX-License-Identifier: MIT
// The hosts of a published source against those that the calibration was measured on: numbers of the mapping, fitted on
// its fit rows and nothing else.
//
//     t(row) = t(simulated with host times * scale) + step (inference)
// One scale and one step per framework, profile and generation of machines: none per network. Least sum of
// |ln(predicted / measured)|, cut off.
#pragma once

#include <string>
#include <vector>

#include "validation/compare/published_rows.hpp"

namespace voltaic::validation {

/// Host scales at which rows are predicted; between them times are interpolated.
inline constexpr double kHostScales[] = {0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6};

/// A row with its predictions for hosts of several speeds.
struct HostSample {
  std::string model, framework, mode, profile;
  std::string flags;       ///< "TorchScript" where the script is compiled so, else empty.
  std::string generation;  ///< "v100" of "v100-sxm2-16gb".
  double measured_s = 0;
  bool fit = false;
  std::vector<double> predicted_s;  ///< By kHostScales, without the host's steps.
  double at(double scale) const;
};

/// The rows of a published table, predicted at every scale.
std::vector<HostSample> host_samples(Runner& runner, const CsvTable& table, PublishedTable kind);
/// Hosts in the order in which host_of() reads them.
std::vector<PublishedHost> fit_hosts(const std::vector<HostSample>& samples);
/// A mapping file of these hosts.
std::string hosts_file(const std::string& source, const std::vector<PublishedHost>& hosts);

}  // namespace voltaic::validation
