#pragma once
// Who makes batches: the loader's workers ahead of the caller, or the caller itself. Where a batch
// costs a tiny part of the time between two of them (rows of memory that are copied), handing it
// from thread to thread costs more than making it, above all on cores that are busy.

#include <array>
#include <cstddef>

namespace paddle::data {

/// Decides by the last few batches. Not synchronized.
class BatchTiming {
 public:
  /// `seconds`: to make a batch, on whichever thread.
  void note_making(double seconds);
  /// `seconds`: of the caller between two batches.
  void note_using(double seconds);
  /// True once nearly all of the last batches took under 2% of the caller's median time between
  /// batches, until their mean takes more than 4% of it.
  bool caller_makes() const { return caller_makes_; }

 private:
  static constexpr size_t kWindow = 8;
  struct Last {
    std::array<double, kWindow> seconds{};
    size_t count = 0;
    void note(double value) { seconds[count++ % kWindow] = value; }
    /// The element that `rank` others do not exceed.
    double ranked(size_t rank) const;
  };
  Last making_, using_;
  size_t since_change_ = 0;  ///< batches made
  bool caller_makes_ = false;
};

}  // namespace paddle::data
