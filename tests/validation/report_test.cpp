// SPDX-License-Identifier: MIT
// What a validation looks like: the page stays short, CSV cells are quoted, HTML is whole and loads nothing.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "validation/compare/svg_plot.hpp"
#include "validation/compare/validate.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

Validation invented(std::size_t rows, const std::string& label = "8 x 8, \"odd\" <b>&") {
  Validation v;
  for (std::size_t i = 0; i < rows; ++i) {
    Pair p;
    p.gpu = i % 2 == 0 ? "T4" : "V100";
    p.op = "add";
    p.dtype = "fp32";
    p.mode = "forward";
    p.origin = "train";
    p.family = "pointwise";
    p.label = label;
    p.explanation = "some_kernel<4> 3 us, dram bound";
    p.measured = 1e-5 * (1 + static_cast<double>(i));
    p.predicted = p.measured * (0.6 + 0.01 * static_cast<double>((37 * i) % 100));
    p.low = 0.9 * p.predicted;
    p.high = 1.1 * p.predicted;
    p.size = 100.0 * static_cast<double>(i + 1);
    p.fit = i % 3 == 0;
    v.pairs.push_back(p);
  }
  skip(v, "a <reason>", 2);
  v.groups = group(v.pairs);
  v.pooled = pool(v);
  v.warnings = {"a < warning"};
  return v;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++n;
  return n;
}

/// Empty when every element is closed in order, else where it breaks.
std::string broken_at(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return html.substr(at, 60);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.empty() || tag.find('<') != std::string::npos) return tag + "...";
    if (tag[0] == '!' || tag.back() == '/') continue;
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find(' ') - (tag[0] == '/' ? 1 : 0));
    if (tag[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return tag;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "unclosed " + open.back();
}

}  // namespace

TEST_CASE("few rows stand on the page one by one, many by group with the worst three", "[validation][report]") {
  const std::string few = validation_page(invented(kRowsOnPage, "shape"), 100);
  CHECK(count(few, "shape") == kRowsOnPage);
  const std::string many = validation_page(invented(4000, "shape"), 100);
  CHECK(count(many, "shape") == 6);  // two groups, three rows each
  CHECK(count(many, "some_kernel") == 6);
  CHECK(count(many, "\n") < 60);
  CHECK(many.find("4000 of 4002 measured figures predicted") != std::string::npos);
  CHECK(many.find("skipped 2: a <reason>") != std::string::npos);
  CHECK(many.find("a < warning") != std::string::npos);
  CHECK(validation_page(Validation{}, 100).find("0 of 0") != std::string::npos);
}

TEST_CASE("CSV quotes what holds commas and gives one line a row", "[validation][report]") {
  const std::string csv = validation_csv(invented(7));
  CHECK(count(csv, "\n") == 8);
  CHECK(count(csv, "\"8 x 8, \"\"odd\"\" <b>&\"") == 7);
}

TEST_CASE("the HTML page is whole, escapes words and loads nothing", "[validation][report]") {
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{500}}) {
    INFO(rows);
    const std::string html = validation_html(invented(rows));
    INFO(broken_at(html));
    CHECK(broken_at(html).empty());
    CHECK(html.rfind("<!DOCTYPE html>", 0) == 0);
    for (const char* outside : {"http:", "https:", "<script", "<link", "<img", "@import", "url("}) {
      INFO(outside);
      CHECK(html.find(outside) == std::string::npos);
    }
    CHECK(html.find("<b>") == std::string::npos);
    CHECK(html.find("nan") == std::string::npos);
    CHECK(html.find("inf\"") == std::string::npos);
    CHECK(html.find("prefers-color-scheme") != std::string::npos);
  }
  // Three plots for each of two GPUs.
  CHECK(count(validation_html(invented(500)), "<svg") == 6);
}

TEST_CASE("a plot draws no more points than the limit, and every one of few", "[validation][report]") {
  std::vector<PlotPoint> points;
  for (int i = 1; i <= 60000; ++i) {
    const double t = 1e-6 * i;
    points.push_back({t, t * (0.5 + ((i * 7919) % 1000) / 1000.0), 1e3 * i, i % 2 == 0});
  }
  for (const std::string& plot : {scatter_svg(points), error_by_size_svg(points, "FLOP")}) {
    CHECK(count(plot, "h0") <= kMostPoints + 2);  // and two in the legend
    CHECK(count(plot, "h0") > kMostPoints / 2);
  }
  CHECK(scatter_svg(points) == scatter_svg(points));
  points.resize(3);
  CHECK(count(scatter_svg(points), "h0") == 5);
  CHECK(scatter_svg({}).empty());
  CHECK(histogram_svg({}).empty());
}

TEST_CASE("plots stand values that no axis was made for", "[validation][report]") {
  // Nothing predicted, one point alone, times from a nanosecond to a year.
  for (const auto& points : {std::vector<PlotPoint>{{1e-3, 0, 0, false}},
                             std::vector<PlotPoint>{{1e-9, 1e-9, 1, false}, {3e7, 3e9, 1e30, true}}}) {
    for (const std::string& plot : {scatter_svg(points), error_by_size_svg(points, "bytes"), histogram_svg(points)}) {
      CHECK(broken_at(plot).empty());
      CHECK(plot.find("nan") == std::string::npos);
      CHECK(plot.find("inf") == std::string::npos);
    }
  }
}
