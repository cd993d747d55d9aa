// SPDX-License-Identifier: MIT
// Shape rules of convolutions, pooling and resizing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph::detail {

namespace {

struct ConvShape {
  std::array<std::int64_t, 3> stride, padding, dilation, output_padding;
  std::int64_t groups = 1;
};

ConvShape conv_attributes(const RuleContext& c, std::size_t dims) {
  return {c.spatial("stride", dims, 1, 1), c.spatial("padding", dims, 0, 0), c.spatial("dilation", dims, 1, 1),
          c.spatial("output_padding", dims, 0, 0), c.integer("groups", 1, 1)};
}

/// Spatial size after a convolution: floor((in + 2 p - d (f - 1) - 1) / s) + 1.
std::int64_t conv_size(std::int64_t in, std::int64_t filter, std::int64_t s, std::int64_t p, std::int64_t d) {
  const std::int64_t reach = plus(times(d, filter - 1), 1);
  const std::int64_t room = plus(in, times(2, p)) - reach;
  return room < 0 ? -1 : room / s + 1;
}

/// The inverse: (in - 1) s - 2 p + d (f - 1) + output_padding + 1.
std::int64_t conv_transpose_size(std::int64_t in, std::int64_t filter, const ConvShape& a, std::size_t d) {
  const std::int64_t spread = plus(times(in - 1, a.stride[d]), times(a.dilation[d], filter - 1));
  return plus(plus(spread, -times(2, a.padding[d])), plus(a.output_padding[d], 1));
}

/// Output of a forward convolution of x by filter w; the inputs' positions serve for the refusals.
Shape conv_shape(const RuleContext& c, const Shape& x, const Shape& w, bool transposed, std::size_t x_at,
                 std::size_t w_at) {
  const std::size_t dims = w.size() - 2;
  if (x.size() != w.size()) c.refuse_input(x_at, fmt::format("rank {} [N, C, spatial]", w.size()));
  const ConvShape a = conv_attributes(c, dims);
  for (std::size_t d = 2; d < w.size(); ++d) {
    if (w[d] < 1) c.refuse_input(w_at, "filter sizes of 1 or more");
  }
  const std::int64_t channels = x[1];
  if (channels % a.groups != 0) c.refuse_input(x_at, fmt::format("channels that {} groups divide", a.groups));
  if (!transposed && w[1] != channels / a.groups) {
    c.refuse_input(w_at, fmt::format("{} channels per group in dimension 1", channels / a.groups));
  }
  if (!transposed && w[0] % a.groups != 0) c.refuse_input(w_at, fmt::format("filters that {} groups divide", a.groups));
  if (transposed && w[0] != channels) c.refuse_input(w_at, fmt::format("{} channels in dimension 0", channels));

  Shape y{x[0], transposed ? times(w[1], a.groups) : w[0]};
  for (std::size_t d = 0; d < dims; ++d) {
    const std::int64_t size = transposed ? conv_transpose_size(x[d + 2], w[d + 2], a, d)
                                         : conv_size(x[d + 2], w[d + 2], a.stride[d], a.padding[d], a.dilation[d]);
    if (size < 0 || (transposed && size < 1)) {
      c.refuse_input(x_at,
                     fmt::format("spatial sizes that hold a filter of {}", to_string(Shape(w.begin() + 2, w.end()))));
    }
    y.push_back(size);
  }
  return y;
}

std::size_t conv_dims(OpType op) {
  switch (op) {
    case OpType::conv1d:
    case OpType::conv_transpose1d: return 1;
    case OpType::conv2d:
    case OpType::conv_transpose2d: return 2;
    default: return 3;
  }
}

void require_conv_rank(const RuleContext& c, std::size_t input, const Shape& shape) {
  if (shape.size() < 3 || shape.size() > 5) c.refuse_input(input, "rank 3, 4 or 5");
}

Types conv_gradient(const RuleContext& c) {
  const bool data = c.op == OpType::conv_dgrad;
  const std::string_view name = data ? "input_shape" : "filter_shape";
  const Shape wanted = c.required_shape(name);
  const Shape& x = data ? wanted : c.shape(0);
  const Shape& w = data ? c.shape(1) : wanted;
  const std::size_t dy = data ? 0 : 1;
  require_conv_rank(c, 1 - dy, data ? c.shape(1) : c.shape(0));
  if (wanted.size() != c.rank(1 - dy)) {
    c.refuse_attribute(name, fmt::format("rank {}", c.rank(1 - dy)), to_string(wanted));
  }
  c.require_shape(dy, conv_shape(c, x, w, c.attributes.flag("transposed"), 0, 1));
  return {{wanted, c.dtype(1 - dy)}};
}

/// ceil_mode as frameworks do it: a window that would begin in the right padding does not count.
std::int64_t pool_size(std::int64_t in, std::int64_t kernel, std::int64_t s, std::int64_t p, bool ceil) {
  const std::int64_t room = plus(in, times(2, p)) - kernel;
  if (room < 0) return -1;
  std::int64_t size = (ceil ? plus(room, s - 1) : room) / s + 1;
  if (ceil && times(size - 1, s) >= plus(in, p)) --size;
  return size;
}

std::size_t pool_dims(OpType op) {
  switch (op) {
    case OpType::max_pool1d:
    case OpType::avg_pool1d: return 1;
    case OpType::max_pool3d:
    case OpType::avg_pool3d: return 3;
    default: return 2;
  }
}

/// Of the pooling `of` over x, the shape of input `at` or of a gradient that belongs to it.
Shape pool_shape(const RuleContext& c, OpType of, const Shape& x, std::size_t at) {
  const std::size_t dims = pool_dims(of);
  if (of == OpType::global_avg_pool2d) return {x[0], x[1], 1, 1};
  if (!c.attributes.has("kernel"))
    c.refuse_attribute("kernel", fmt::format("an integer or {} of them", dims), "nothing");
  const auto kernel = c.spatial("kernel", dims, 1, 1);
  const auto stride = c.attributes.has("stride") ? c.spatial("stride", dims, 1, 1) : kernel;
  const auto padding = c.spatial("padding", dims, 0, 0);
  Shape result = x;
  for (std::size_t d = 0; d < dims; ++d) {
    if (padding[d] > kernel[d] / 2) {
      c.refuse_attribute("padding", fmt::format("at most half the kernel, {}", kernel[d] / 2),
                         std::to_string(padding[d]));
    }
    std::int64_t& size = result[d + 2];
    size = pool_size(size, kernel[d], stride[d], padding[d], c.attributes.flag("ceil_mode"));
    if (size < 0) {
      c.refuse_input(at,
                     fmt::format("spatial sizes that hold a kernel of {}",
                                 to_string(Shape(kernel.begin(), kernel.begin() + static_cast<std::ptrdiff_t>(dims)))));
    }
  }
  return result;
}

Types pool_gradient(const RuleContext& c) {
  Shape input = c.required_shape("input_shape");
  if (input.size() != c.rank(0)) c.refuse_attribute("input_shape", fmt::format("rank {}", c.rank(0)), to_string(input));
  if (c.input_count() == 2) c.require_shape(1, input);
  const std::string word = c.attributes.word("of", "max_pool2d");
  const auto of = parse_op(word);
  const bool pools = of && family(*of) == OpFamily::pooling && *of != OpType::pool_backward;
  if (!pools) c.refuse_attribute("of", "a pooling operation", fmt::format("'{}'", one_line(word, 40)));
  if (input.size() != pool_dims(*of) + 2) {
    c.refuse_attribute("input_shape", fmt::format("rank {}", pool_dims(*of) + 2), to_string(input));
  }
  if (*of == OpType::global_avg_pool2d || c.attributes.has("kernel")) {
    c.require_shape(0, pool_shape(c, *of, input, 0));
  }
  return {{std::move(input), c.dtype(0)}};
}

}  // namespace

Types convolution_rule(const RuleContext& c) {
  if (c.op == OpType::conv_dgrad || c.op == OpType::conv_wgrad) return conv_gradient(c);
  const bool transposed =
      c.op == OpType::conv_transpose1d || c.op == OpType::conv_transpose2d || c.op == OpType::conv_transpose3d;
  const std::size_t dims = conv_dims(c.op);
  c.require_rank(0, dims + 2, "[N, C, spatial]");
  c.require_rank(1, dims + 2, "[filters, channels, filter]");
  TensorType y{conv_shape(c, c.shape(0), c.shape(1), transposed, 0, 1), c.dtype(0)};
  if (c.input_count() > 2) c.require_shape(2, {y.shape[1]});
  if (c.input_count() > 3) c.require_shape(3, y.shape);
  return {std::move(y)};
}

Types pooling_rule(const RuleContext& c) {
  if (c.op == OpType::pool_backward) return pool_gradient(c);
  const std::size_t dims = pool_dims(c.op);
  c.require_rank(0, dims + 2, dims == 2 ? "[N, C, H, W]" : "[N, C, spatial]");
  return {{pool_shape(c, c.op, c.shape(0), 0), c.dtype(0)}};
}

Types resize_rule(const RuleContext& c) {
  c.require_min_rank(0, 3);
  if (c.op == OpType::resize_backward) {
    Shape input = c.required_shape("input_shape");
    if (input.size() != c.rank(0))
      c.refuse_attribute("input_shape", fmt::format("rank {}", c.rank(0)), to_string(input));
    return {{std::move(input), c.dtype(0)}};
  }
  const std::size_t dims = std::min<std::size_t>(c.rank(0) - 2, 3);
  if (c.rank(0) != dims + 2) c.refuse_input(0, "rank 3, 4 or 5");
  TensorType result = c.like(0);
  if (c.attributes.has("size")) {
    const auto size = c.spatial("size", dims, 1, 0);
    std::copy_n(size.begin(), dims, result.shape.begin() + 2);
    return {result};
  }
  const double scale = c.attributes.number("scale", 0);
  if (!(scale > 0 && std::isfinite(scale))) {
    c.refuse_attribute("scale", "a number above 0, or attribute 'size'",
                       c.attributes.has("scale") ? fmt::format("{}", scale) : "nothing");
  }
  for (std::size_t d = 2; d < result.shape.size(); ++d) {
    const double size = std::floor(static_cast<double>(result.shape[d]) * scale);
    if (size > static_cast<double>(kMaxElements))
      c.refuse_attribute("scale", "at most 2^62 elements", fmt::format("{}", scale));
    result.shape[d] = static_cast<std::int64_t>(size);
  }
  return {result};
}

}  // namespace voltaic::graph::detail
