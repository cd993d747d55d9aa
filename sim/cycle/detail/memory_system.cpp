// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/memory_system.hpp"

#include <algorithm>
#include <cmath>

namespace voltaic::cycle::detail {
namespace {

constexpr double kSector = 32;
constexpr int kChannelShift = 9;  ///< blocks of 512 bytes to one channel.

/// Spreads addresses over servers as the hardware's hash does: no stride keeps to a few of them.
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

/// The server of a block: blocks in a row go round all of them, each round from a place of its own.
std::size_t server_of(std::uint64_t block, std::size_t servers) {
  return (block + mix(block / servers)) % servers;
}

/// Whether a tensor pays the far latency: not while a copy fits the near partition. That latency is what a chase beyond
/// one partition sees on the mean, misses of the copies included.
double far_share(const Tensor& tensor, const Machine& machine) {
  if (machine.l2_partitions < 2) return 0;
  return tensor.unique_bytes * machine.l2_partitions <= machine.l2_capacity ? 0 : 1;
}

}  // namespace

MemorySystem::MemorySystem(const Program& program, const Machine& machine, const RunOptions& options)
    : machine_(machine) {
  const double share = static_cast<double>(options.sms) / std::max(options.active_sms, 1.0);
  // One SM that stands for many sees the mean of all slices and channels; many SMs meet at single ones.
  slices_alone_ = options.sms == 1;
  const auto servers = [&](int count) { return slices_alone_ ? std::size_t{1} : static_cast<std::size_t>(count); };
  slices_.resize(servers(machine.l2_slices));
  channels_.resize(servers(machine.dram_channels));
  slice_rate_ = share * machine.l2_bytes_per_cycle / static_cast<double>(slices_.size());
  channel_rate_ = share * machine.dram_bytes_per_cycle / static_cast<double>(channels_.size());
  tensors_.resize(program.tensors.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    tensors_[i].miss_share = 1 - tensor.l2_hit;
    tensors_[i].far_share = far_share(tensor, machine);
    tensors_[i].write_back_share = tensor.write_back;
  }
  if (options.l2 == L2Model::tags) tags_.emplace(machine.l2_capacity, machine.l2_ways);
}

double MemorySystem::l2_start(double bytes, double at, Counters& counters) {
  const double service = bytes / slice_rate_;
  // The rate was measured with the conflicts of hashed addresses in it, so requests go round the slices.
  next_slice_ = next_slice_ + 1 >= slices_.size() ? 0 : next_slice_ + 1;
  Server& slice = slices_[next_slice_];
  counters.l2_busy += service / static_cast<double>(slices_.size());
  return slice.take(at, service);
}

/// Where which lines miss is drawn, where they lie is too: they go round the channels. Evenly spread misses of a
/// regular walk would meet at a few of them.
std::size_t MemorySystem::channel_of(std::uint64_t address) {
  if (channels_.size() == 1) return 0;
  if (tags_) return server_of(address >> kChannelShift, channels_.size());
  return next_channel_ = next_channel_ + 1 == channels_.size() ? 0 : next_channel_ + 1;
}

double MemorySystem::dram_start(const LineRequest& request, double bytes, bool write, double at, Counters& counters) {
  (write ? written_bytes_ : read_bytes_) += bytes;
  (write ? counters.dram_write_bytes : counters.dram_read_bytes) += bytes;
  // Turnarounds are most frequent when half the bytes are written.
  const double written = written_bytes_ / (read_bytes_ + written_bytes_);
  const double mixed = 2 * std::min(written, 1 - written);
  const double share = machine_.dram_read_share + mixed * (machine_.dram_mixed_share - machine_.dram_read_share);
  const double service = bytes / (channel_rate_ * share * request.apart);
  Server& channel = channels_[channel_of(request.address)];
  counters.dram_busy += bytes / channel_rate_ / static_cast<double>(channels_.size());
  return channel.take(at, service) + service;
}

bool MemorySystem::missing(const LineRequest& request, TensorState& tensor, bool write) {
  if (tags_) return !tags_->access(request.address, static_cast<unsigned>(request.sectors), write);
  return tensor.miss.draw(tensor.miss_share);
}

double MemorySystem::read(const LineRequest& request, double at, Counters& counters) {
  const double bytes = kSector * request.sectors;
  TensorState& tensor = tensors_[request.tensor];
  counters.l2_read_sectors += request.sectors;
  const double far = tensor.far_share > 0 ? machine_.l2_far_share : 1;
  const double start = l2_start(bytes / far, at, counters);
  if (tensor.far_share > 0) counters.far_sectors += request.sectors / 2.0;  // half of all addresses lie there
  if (!missing(request, tensor, false)) {
    counters.l2_hit_sectors += request.sectors;
    return start + (tensor.far_share > 0 ? machine_.l2_far_latency : machine_.l2_latency);
  }
  const double to_dram = machine_.l2_latency / 2;  // Half of a hit's time is the way there.
  const double served = dram_start(request, bytes, false, start + to_dram, counters);
  return served + std::max(0.0, machine_.dram_latency - to_dram);
}

double MemorySystem::write(const LineRequest& request, double at, Counters& counters) {
  const double bytes = kSector * request.sectors;
  TensorState& tensor = tensors_[request.tensor];
  counters.l2_write_sectors += request.sectors;
  counters.l2_hit_sectors += request.sectors;  // L2 takes writes in; what it drops for them is another matter
  const double start = l2_start(bytes, at, counters);
  const double to_l2 = machine_.l2_latency / 2;
  const bool through = tags_ ? missing(request, tensor, true) : tensor.write_back.draw(tensor.write_back_share);
  if (!through) return start + to_l2;
  double arrives = start + to_l2;
  if (machine_.fills_cut_sectors && request.cut > 0) {
    arrives = dram_start(request, kSector * request.cut, false, arrives, counters);
  }
  return dram_start(request, bytes, true, arrives, counters);
}

}  // namespace voltaic::cycle::detail
