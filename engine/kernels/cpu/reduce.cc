#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/cpu/elementwise.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kStrip = 512;   // accumulators of neighbouring results
constexpr int64_t kBlock = 1024;  // elements converted at a time

struct Axis {
  int64_t size, stride;
};

/// Offset of the element with this row-major index over `axes`.
int64_t offset_of(const std::vector<Axis>& axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    offset += index % axes[i].size * axes[i].stride;
    index /= axes[i].size;
  }
  return offset;
}

int64_t count_of(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

/// The tensor is split into kept and reduced axes, neighbours of a kind merged. The innermost one
/// is either a run that is reduced, or a strip of results that are accumulated side by side.
/// Where there are few results, the reduced elements are cut into `chunks_`, whose accumulators
/// meet in scratch.
class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const Layout& x, const std::vector<int64_t>& axes, Reduction reduction,
               ReduceForm form, DType result_type)
      : form_(form) {
    split_axes(x.shape, axes);
    compute_ = choose_compute(x.dtype, reduction, result_type);
    loops_ = reduce_loops(reduction, compute_);
    load_ = compute_ == x.dtype ? nullptr : convert_fn(x.dtype, compute_);
    store_ = convert_fn(accumulator_type(compute_), result_type);
    item_ = item_size(x.dtype);
    result_item_ = item_size(result_type);
    if (form == ReduceForm::kLogSumExp) {
      max_loops_ = reduce_loops(Reduction::kMax, compute_);
      exp_ = float_loop("exp", compute_);
    }
    choose_chunks();
  }

  size_t scratch_bytes() const override {
    const int64_t partial = chunks_ > 1 ? chunks_ * results_ : 0;
    const int64_t shifts = form_ == ReduceForm::kLogSumExp ? results_ : 0;
    return static_cast<size_t>(partial + shifts) * 8;
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const std::byte* const x = static_cast<const std::byte*>(operands[0]);
    std::byte* const out = static_cast<std::byte*>(results[0]);
    std::byte* const partial = context.scratch;
    if (form_ != ReduceForm::kLogSumExp) {
      pass(x, loops_, nullptr, partial, [&](int64_t first, int64_t n, std::byte* accumulators) {
        finish(accumulators, first, n, nullptr, out);
      });
      return;
    }
    double* const shifts =
        reinterpret_cast<double*>(partial) + (chunks_ > 1 ? chunks_ * results_ : 0);
    pass(x, max_loops_, nullptr, partial, [&](int64_t first, int64_t n, std::byte* accumulators) {
      const double* const values = reinterpret_cast<double*>(accumulators);
      // An infinite shift would give inf - inf.
      for (int64_t i = 0; i < n; ++i) shifts[first + i] = std::isinf(values[i]) ? 0 : values[i];
    });
    pass(x, loops_, shifts, partial, [&](int64_t first, int64_t n, std::byte* accumulators) {
      finish(accumulators, first, n, shifts, out);
    });
  }

 private:
  void split_axes(const Dims& shape, const std::vector<int64_t>& axes) {
    std::vector<bool> reduced(shape.size(), axes.empty());
    for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
    struct Group {
      Axis axis;
      bool reduced;
    };
    std::vector<Group> groups;
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1) {
        if (!groups.empty() && groups.back().reduced == reduced[i])
          groups.back().axis.size *= shape[i];
        else
          groups.push_back({{shape[i], stride}, reduced[i]});
      }
      stride *= shape[i];
    }
    std::reverse(groups.begin(), groups.end());
    for (const Group& group : groups) (group.reduced ? reduced_ : kept_).push_back(group.axis);
    reduced_count_ = count_of(reduced_);
    results_ = count_of(kept_);
    inner_kept_ = !groups.empty() && !groups.back().reduced;
    std::vector<Axis>& last = inner_kept_ ? kept_ : reduced_;
    if (groups.empty()) last.push_back({1, 1});
    inner_ = last.back().size;
    last.pop_back();
    outer_ = count_of(kept_);
    repeats_ = count_of(reduced_);
  }

  static DType choose_compute(DType x, Reduction reduction, DType result) {
    if (reduction == Reduction::kAll || reduction == Reduction::kAny) return DType::kBool;
    if (is_float(result)) return is_float(x) ? compute_type(x) : DType::kF64;
    return is_float(x) ? result : x;
  }

  void choose_chunks() {
    strips_ = inner_kept_ ? (inner_ + kStrip - 1) / kStrip : 1;
    const int64_t tasks = outer_ * strips_;
    const int64_t splittable = repeats_ > 1 || inner_kept_ ? repeats_ : inner_;
    split_run_ = !inner_kept_ && repeats_ == 1;
    chunks_ = 1;
    if (tasks < 16 && reduced_count_ * results_ > 65536)
      chunks_ = std::clamp<int64_t>(reduced_count_ * results_ / 32768, 1,
                                    std::min<int64_t>(64, splittable));
  }

  /// Calls `done(first result, count, accumulators)` for all results, from several threads.
  template <class Done>
  void pass(const std::byte* x, const ReduceLoops& loops, const double* shifts, std::byte* partial,
            Done done) const {
    const int64_t tasks = outer_ * strips_;
    const int64_t cost =
        std::max<int64_t>(1, reduced_count_ * results_ / std::max<int64_t>(1, tasks * chunks_));
    const int64_t grain = std::max<int64_t>(1, 32768 / cost);
    parallel_for(tasks * chunks_, grain, [&](int64_t begin, int64_t end) {
      alignas(64) std::byte local[kStrip * 8];
      for (int64_t task = begin; task < end; ++task) {
        const int64_t chunk = task / tasks, place = task % tasks;
        const int64_t first =
            place / strips_ * (inner_kept_ ? inner_ : 1) + place % strips_ * kStrip;
        const int64_t width = inner_kept_ ? std::min(kStrip, inner_ - place % strips_ * kStrip) : 1;
        std::byte* const accumulators =
            chunks_ > 1 ? partial + (chunk * results_ + first) * 8 : local;
        loops.clear(accumulators, width);
        accumulate(x, loops, shifts, place, chunk, first, width, accumulators);
        if (chunks_ == 1) done(first, width, accumulators);
      }
    });
    if (chunks_ == 1) return;
    for (int64_t chunk = 1; chunk < chunks_; ++chunk)
      loops.combine(partial, partial + chunk * results_ * 8, results_);
    done(0, results_, partial);
  }

  void accumulate(const std::byte* x, const ReduceLoops& loops, const double* shifts, int64_t place,
                  int64_t chunk, int64_t first, int64_t width, std::byte* accumulators) const {
    const int64_t strip = place % strips_ * kStrip;
    const int64_t base = offset_of(kept_, place / strips_) + strip;
    const int64_t total = split_run_ ? inner_ : repeats_;
    const int64_t begin = total * chunk / chunks_, end = total * (chunk + 1) / chunks_;
    if (split_run_) {
      fold(x, base + begin, end - begin, loops.run, shifts ? shifts + first : nullptr, true,
           accumulators);
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = base + offset_of(reduced_, r);
      if (inner_kept_)
        fold(x, at, width, loops.rows, shifts ? shifts + first : nullptr, false, accumulators);
      else
        fold(x, at, inner_, loops.run, shifts ? shifts + first : nullptr, true, accumulators);
    }
  }

  /// Feeds n elements from `at` on to a loop, converted and shifted where needed. `shifts` holds
  /// one value for a run, one per element otherwise.
  void fold(const std::byte* x, int64_t at, int64_t n, void (*loop)(void*, const void*, int64_t),
            const double* shifts, bool run, std::byte* accumulators) const {
    if (!load_ && !shifts) {
      loop(accumulators, x + at * item_, n);
      return;
    }
    alignas(64) std::byte buffer[kBlock * 8];
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t count = std::min(kBlock, n - done);
      const std::byte* const source = x + (at + done) * item_;
      if (load_)
        load_(source, 1, buffer, count);
      else
        std::memcpy(buffer, source, static_cast<size_t>(count * item_));
      if (shifts) {
        if (compute_ == DType::kF32)
          shift(reinterpret_cast<float*>(buffer), count, run ? shifts : shifts + done, run);
        else
          shift(reinterpret_cast<double*>(buffer), count, run ? shifts : shifts + done, run);
        const void* in[] = {buffer};
        exp_(in, buffer, count, nullptr);
      }
      loop(run ? accumulators : accumulators + done * 8, buffer, count);
    }
  }

  template <class T>
  static void shift(T* values, int64_t n, const double* by, bool same) {
    if (same) {
      const T value = static_cast<T>(by[0]);
      for (int64_t i = 0; i < n; ++i) values[i] -= value;
    } else {
      for (int64_t i = 0; i < n; ++i) values[i] -= static_cast<T>(by[i]);
    }
  }

  void finish(std::byte* accumulators, int64_t first, int64_t n, const double* shifts,
              std::byte* out) const {
    double* const values = reinterpret_cast<double*>(accumulators);
    if (form_ == ReduceForm::kMean)
      for (int64_t i = 0; i < n; ++i) values[i] /= static_cast<double>(reduced_count_);
    if (form_ == ReduceForm::kLogSumExp)
      for (int64_t i = 0; i < n; ++i) values[i] = std::log(values[i]) + shifts[first + i];
    store_(accumulators, 1, out + first * result_item_, n);
  }

  ReduceForm form_;
  DType compute_;
  ReduceLoops loops_, max_loops_{};
  Loop exp_ = nullptr;
  ConvertFn load_, store_;
  int64_t item_, result_item_;
  std::vector<Axis> kept_, reduced_;  // without the innermost one
  int64_t outer_, repeats_, inner_, results_, reduced_count_, strips_, chunks_;
  bool inner_kept_, split_run_;
};

}  // namespace

std::unique_ptr<Kernel> reduce(const Layout& x, const std::vector<int64_t>& axes,
                               Reduction reduction, ReduceForm form, DType result_type) {
  return std::make_unique<ReduceKernel>(x, axes, reduction, form, result_type);
}

std::unique_ptr<Kernel> prepare_reduce(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  std::vector<int64_t> axes;
  const int at = request.op.attr_index("axis");
  if (at >= 0 && !request.attrs[static_cast<size_t>(at)].is_none()) {
    axes = request.attrs[static_cast<size_t>(at)].as_ints();
    for (int64_t& axis : axes)
      if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
    if (x.shape.empty()) axes.clear();  // a number has axis 0 or -1, over which there is nothing
  }
  struct Entry {
    std::string_view name;
    Reduction reduction;
    ReduceForm form;
  };
  static constexpr Entry kEntries[] = {
      {"sum", Reduction::kSum, ReduceForm::kPlain},
      {"mean", Reduction::kSum, ReduceForm::kMean},
      {"max", Reduction::kMax, ReduceForm::kPlain},
      {"min", Reduction::kMin, ReduceForm::kPlain},
      {"prod", Reduction::kProd, ReduceForm::kPlain},
      {"all", Reduction::kAll, ReduceForm::kPlain},
      {"any", Reduction::kAny, ReduceForm::kPlain},
      {"logsumexp", Reduction::kSum, ReduceForm::kLogSumExp},
  };
  for (const Entry& entry : kEntries)
    if (entry.name == request.op.name())
      return reduce(x, axes, entry.reduction, entry.form, request.results[0].dtype);
  return nullptr;
}

}  // namespace paddle::cpu
