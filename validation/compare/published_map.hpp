// SPDX-License-Identifier: MIT
// What a row of a published throughput table asks for, as data: validation/published/*.json.
//
// One file per source, one entry per model as the source spells it. The first entry that matches a row decides; the
// file's README tells the keys. Nothing in an entry is a measured time: it says what ran.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic::validation {

/// One published figure, whatever the columns of its table are called.
struct PublishedRow {
  std::string model, submodel, framework;
  std::string gpu;        ///< The table's spelling.
  std::string mode;       ///< "training" or "inference".
  std::string precision;  ///< The table's word.
  std::string size;       ///< Sequence length, image side or volume, in the table's words.
  std::string flags;      ///< Everything else that tells runs apart.
  std::string unit;       ///< Of the throughput: "images/s".
  std::int64_t gpus = 1;
  std::optional<std::int64_t> batch;  ///< Per GPU.
  std::optional<double> throughput;
  std::optional<double> latency_s;
  std::int64_t occurrence = 0;  ///< How many earlier rows of the table read the same, their figures apart.
};

/// A size that an entry states, takes from the row, or derives from the sequence length of the request.
struct PublishedSize {
  enum class From : std::uint8_t { constant, row, seq };
  From from = From::constant;
  std::size_t index = 0;  ///< From::row: which number of the row's size.
  double factor = 1;      ///< The constant, or what the number is multiplied by.
  /// Nullopt where the row states no such number.
  std::optional<double> of(const std::vector<double>& row_numbers, std::int64_t seq) const;
};

struct PublishedEntry {
  std::string model, submodel, framework, mode, flags;  ///< What it matches; empty matches all, flags is a part.
  std::string gpu;                                      ///< The same: how the table's spelling begins.
  std::string skip;                                     ///< Why such rows are not predicted; empty: they are.
  std::string workload;                                 ///< Zoo name.
  std::map<std::string, std::string> profile;           ///< Framework profile by the table's precision ("": any
                                                        ///< other); none: by the row's framework and flags.
  std::string layout;                                   ///< Empty: the request's default.
  std::string optimizer;                                ///< Empty: the request's default.
  std::string optimizer_kernels;                        ///< The same.
  std::string attention;                                ///< Empty: the request's default.
  std::optional<PublishedSize> seq;
  std::vector<PublishedSize> image;  ///< Height and width, or none.
  std::map<std::string, PublishedSize> dims;
  std::map<std::string, PublishedSize> per_sample;  ///< Units that one sample counts, by unit; absent: one.
  std::map<std::string, std::string> precision;     ///< Ours by the table's word, where it differs from the usual.
  std::map<std::string, std::int64_t> batch;        ///< Where the row states none, by the table's precision.
  double samples_per_batch_unit = 1;                ///< Tables that state a batch in tokens: samples per token.
  std::optional<std::int64_t> occurrence;           ///< Tables whose rows differ by the heading above them alone.
  std::string input_copy;                           ///< Empty: inputs are on the device.
  bool matches(const PublishedRow& row) const;
};

/// The host of a framework as the source ran it, against the hosts that the calibration was measured on: of a
/// framework, a profile and a generation of machines, never of one network. Fitted on fit rows; README.md of the
/// mappings has the figures. The first that matches counts.
struct PublishedHost {
  std::string framework, profile, flags;  ///< Empty matches all; flags is a part.
  std::string gpu;                        ///< First part of our name: "v100".
  double scale = 1;                       ///< Of dispatch and launch times.
  double step_s = 0;                      ///< Around each step of inference, while the GPU waits: loop, session.
};

struct PublishedMap {
  std::string source;
  std::vector<PublishedEntry> entries;
  std::vector<PublishedHost> hosts;
  const PublishedEntry* find(const PublishedRow& row) const;
  PublishedHost host_of(const PublishedRow& row, std::string_view profile, std::string_view gpu) const;
};

/// Throws ConfigError for a file that is no mapping.
PublishedMap parse_published_map(std::string_view text, const std::string& file);
/// A shipped mapping by its source: "deeplearningexamples". Throws ConfigError where there is none.
const PublishedMap& published_map(std::string_view source);
std::vector<std::string> published_sources();

/// The numbers of "224x224x160x4" or "128 6.99", at most eight.
std::vector<double> numbers_of(std::string_view text);

}  // namespace voltaic::validation
