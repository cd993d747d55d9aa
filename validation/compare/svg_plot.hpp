// SPDX-License-Identifier: MIT
// Plots of a validation as inline SVG: predicted against measured, error by size, histogram of errors. Colours are CSS
// classes, so that the page decides between light and dark.
#pragma once

#include <string>
#include <vector>

namespace voltaic::validation {

struct PlotPoint {
  double measured = 0, predicted = 0;
  double size = 0;  ///< FLOP or bytes; 0: unknown, and the measured figure stands in.
  bool fit = false;
  double error() const { return (predicted - measured) / measured; }
};

/// Both axes logarithmic, the identity, and lines at 10 and 20 % of error.
/// `what` is drawn, in `unit`: "time" in "s".
std::string scatter_svg(const std::vector<PlotPoint>& points, const char* what = "time", const char* unit = "s");
/// Error in per cent over the size, logarithmic; errors beyond 50 % stand at the edge. `size_unit`: "FLOP", "bytes";
/// without sizes over what was measured.
std::string error_by_size_svg(const std::vector<PlotPoint>& points, const std::string& size_unit,
                              const char* what = "time", const char* unit = "s");
/// Share of rows by error, in bins of 2.5 %; the outermost bins hold all beyond.
std::string histogram_svg(const std::vector<PlotPoint>& points);

/// Points that a plot draws one by one, at most; more are thinned out, the same way every time.
inline constexpr std::size_t kMostPoints = 4000;

/// The CSS that the plots need, both colour schemes.
std::string plot_css();

}  // namespace voltaic::validation
