#include "launch/link_check.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace paddle::launch {
namespace {

/// The median time of a call in seconds.
template <class Call>
double median(int repeats, const Call& call) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[static_cast<size_t>(repeats / 2)];
}

}  // namespace

LinkTimes check_links(comm::Communicator& communicator, const std::string& version,
                      const std::vector<int64_t>& sizes) {
  const std::vector<int64_t> versions =
      communicator.gather_numbers(crc32(std::as_bytes(std::span(version))));
  for (size_t rank = 1; rank < versions.size(); ++rank)
    if (versions[rank] != versions[0])
      fail(ErrorCode::kConfig, "rank ", rank,
           " has a different version of the program than rank 0");
  constexpr int kBarriers = 201, kReductions = 11, kFew = 2;
  LinkTimes times;
  for (int i = 0; i < kFew; ++i) communicator.barrier();
  times.barrier = median(kBarriers, [&] { communicator.barrier(); });
  for (const int64_t bytes : sizes) {
    const auto count = bytes / static_cast<int64_t>(sizeof(float));
    std::vector<float> values(static_cast<size_t>(count), 1), sums(values.size());
    std::vector<std::byte> scratch(
        comm::all_reduce_scratch(DType::kF32, count, communicator.all().size()));
    const comm::ReduceBuffer tensor{values.data(), sums.data(), count};
    const auto reduce = [&] {
      communicator.collectives().all_reduce(
          {&tensor, 1}, DType::kF32, comm::Reduction::kSum,
          {.group = communicator.all(), .scratch = scratch.data()});
    };
    reduce();
    times.reductions.push_back({bytes, median(kReductions, reduce)});
    if (count > 0 && sums[0] != static_cast<float>(communicator.size()))
      fail(ErrorCode::kPeer, "an all-reduce of ones over ", communicator.size(), " ranks gave ",
           static_cast<double>(sums[0]));
  }
  return times;
}

std::string text(const LinkTimes& times, int ranks) {
  constexpr double kMicro = 1e6, kMilli = 1e3, kGiga = 1e9;
  const auto rounded = [](double value) {
    constexpr double kDigits = 100;
    return format_double(static_cast<double>(static_cast<int64_t>(value * kDigits + 0.5)) /
                         kDigits);
  };
  std::string out =
      str(ranks, " ranks\nbarrier            ", rounded(times.barrier * kMicro), " us\n");
  for (const auto& r : times.reductions)
    out += str("all-reduce ", human_bytes(static_cast<uint64_t>(r.bytes)), "  ",
               rounded(r.seconds * kMilli), " ms  ", rounded(r.bandwidth() / kGiga), " GB/s\n");
  return out;
}

}  // namespace paddle::launch
