// SPDX-License-Identifier: MIT
// Pieces that several JSON answers share.
#pragma once

#include "sim/report/detail/json_writer.hpp"
#include "sim/report/json.hpp"

namespace voltaic::report {

/// Opens the document and writes all of the envelope up to and including the key "result".
void begin_document(JsonWriter& w, const Envelope& envelope);
/// Closes it and gives the text with a final newline.
std::string end_document(JsonWriter& w);

void write_interval(JsonWriter& w, const Interval& interval);
void write_memory(JsonWriter& w, const MemoryUse& use);
void write_settings(JsonWriter& w, const Settings& settings);

}  // namespace voltaic::report
