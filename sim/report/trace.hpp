// SPDX-License-Identifier: MIT
// The timeline as a Chrome trace, which Perfetto and chrome://tracing load.
#pragma once

#include <ostream>

#include "sim/report/prediction.hpp"

namespace voltaic::report {

/// pid 1 is the GPU with one tid per stream, pid 0 the host thread; complete events in microseconds with the layer in
/// args. Written event by event: memory does not grow with the trace.
void write_trace(const Prediction& prediction, std::ostream& out);

}  // namespace voltaic::report
