#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/algorithm_table.h"
#include "kernels/elementwise/elementwise.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kBlock = 1024;          // elements converted at a time, a multiple of kRunPiece
constexpr int64_t kMinChunk = 16384;      // elements worth a thread
constexpr int64_t kMaxChunks = 64;        // upper limit for the number of chunks
constexpr int64_t kMinRowsPerChunk = 16;  // chunks are combined at the end

/// Offset of the element with this row-major index over `axes`.
int64_t offset_of(const std::vector<ReduceSchedule::Axis>& axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    offset += index % axes[i].size * axes[i].stride;
    index /= axes[i].size;
  }
  return offset;
}

int64_t count_of(const std::vector<ReduceSchedule::Axis>& axes) {
  int64_t count = 1;
  for (const ReduceSchedule::Axis& axis : axes) count *= axis.size;
  return count;
}

}  // namespace

// --- schedule ---

ReduceSchedule::ReduceSchedule(const Dims& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> is_reduced(shape.size(), axes.empty());
  for (const int64_t axis : axes) is_reduced[static_cast<size_t>(axis)] = true;
  struct Group {
    Axis axis;
    bool reduced;
  };
  std::vector<Group> groups;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1) {
      if (!groups.empty() && groups.back().reduced == is_reduced[i])
        groups.back().axis.size *= shape[i];
      else
        groups.push_back({{shape[i], stride}, is_reduced[i]});
    }
    stride *= shape[i];
  }
  std::reverse(groups.begin(), groups.end());
  for (const Group& group : groups) (group.reduced ? reduced : kept).push_back(group.axis);
  count = count_of(reduced);
  results = count_of(kept);
  inner_kept = !groups.empty() && !groups.back().reduced;
  std::vector<Axis>& last = inner_kept ? kept : reduced;
  if (groups.empty()) last.push_back({1, 1});
  inner = last.back().size;
  last.pop_back();
  outer = count_of(kept);
  repeats = count_of(reduced);
  split_run = !inner_kept && repeats == 1;
  strips = inner_kept ? (inner + kStrip - 1) / kStrip : 1;
  const int64_t tasks = outer * strips, elements = count * results;
  if (tasks > 0 && tasks < 16 && elements > 2 * kMinChunk)
    chunks =
        std::clamp<int64_t>(elements / kMinChunk, 1,
                            std::min((kMaxChunks + tasks - 1) / tasks,
                                     std::max<int64_t>(1, inner_kept  ? repeats / kMinRowsPerChunk
                                                          : split_run ? inner
                                                                      : repeats)));
  split_run = split_run && chunks > 1;
}

ReduceSchedule::Task ReduceSchedule::task(int64_t index) const {
  const int64_t slots = outer * strips, slot = index % slots;
  Task t;
  t.chunk = index / slots;
  const int64_t strip = slot % strips;
  // Strips start at cache lines.
  const int64_t lines = (inner + 63) / 64, from = lines * strip / strips * 64,
                to = std::min(inner, lines * (strip + 1) / strips * 64);
  t.width = inner_kept ? to - from : 1;
  t.first = inner_kept ? slot / strips * inner + from : slot;
  t.base = offset_of(kept, slot / strips) + (inner_kept ? from : 0);
  const int64_t rows = split_run ? inner : repeats;
  const int64_t group = split_run ? kRunPiece : 1, groups = (rows + group - 1) / group;
  t.begin = groups * t.chunk / chunks * group;
  t.end = std::min(rows, groups * (t.chunk + 1) / chunks * group);
  return t;
}

int64_t ReduceSchedule::row_offset(int64_t row) const {
  return split_run ? row : offset_of(reduced, row);
}

// --- reducer ---

Reducer::Reducer(DType x, Reduction reduction, ReduceForm form, DType result_type)
    : form_(form), result_item_(item_size(result_type)) {
  if (reduction == Reduction::kAll || reduction == Reduction::kAny)
    compute = DType::kBool;
  else if (is_float(result_type))
    compute = is_float(x) ? compute_type(x) : DType::kF64;
  else
    compute = is_float(x) ? result_type : x;
  loops = reduce_loops(reduction, compute);
  store_ = convert_fn(accumulator_type(compute), result_type);
}

void Reducer::finish(std::byte* accumulators, int64_t first, int64_t n, int64_t count,
                     std::byte* out) const {
  double* const values = reinterpret_cast<double*>(accumulators);
  if (form_ == ReduceForm::kMean)
    for (int64_t i = 0; i < n; ++i) values[i] /= static_cast<double>(count);
  store_(accumulators, 1, out + first * result_item_, n);
}

// --- kernel ---

namespace {

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const Layout& x, const ReduceCall& call, DType result_type)
      : schedule_(x.shape, call.axes),
        reducer_(x.dtype, call.reduction, call.form, result_type),
        item_(item_size(x.dtype)) {
    const DType compute = reducer_.compute;
    load_ = compute == x.dtype ? nullptr : convert_fn(x.dtype, compute);
    if (call.form == ReduceForm::kLogSumExp) {
      max_loops_ = reduce_loops(Reduction::kMax, compute);
      exp_ = float_loop("exp", compute);
    }
    is_contiguous_ = reducer_.loops.all_runs && !load_ && !exp_ && schedule_.has_contiguous_runs();
  }

  size_t scratch_bytes() const override {
    const int64_t partial = schedule_.chunks > 1 ? schedule_.chunks * schedule_.results : 0;
    return static_cast<size_t>(partial + (exp_ ? schedule_.results : 0)) * 8;
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const std::byte* const x = static_cast<const std::byte*>(operands[0]);
    std::byte* const out = static_cast<std::byte*>(results[0]);
    std::byte* const partial = context.scratch;
    if (is_contiguous_) {
      run_contiguous(x, out);
      return;
    }
    if (!exp_) {
      pass(x, reducer_.loops, nullptr, partial,
           [&](int64_t first, int64_t n, std::byte* accumulators) {
             reducer_.finish(accumulators, first, n, schedule_.count, out);
           });
      return;
    }
    double* const shifts = reinterpret_cast<double*>(partial) +
                           (schedule_.chunks > 1 ? schedule_.chunks * schedule_.results : 0);
    pass(x, max_loops_, nullptr, partial, [&](int64_t first, int64_t n, std::byte* accumulators) {
      const double* const values = reinterpret_cast<double*>(accumulators);
      // An infinite shift would yield inf - inf.
      for (int64_t i = 0; i < n; ++i) shifts[first + i] = std::isinf(values[i]) ? 0 : values[i];
    });
    pass(x, reducer_.loops, shifts, partial,
         [&](int64_t first, int64_t n, std::byte* accumulators) {
           double* const values = reinterpret_cast<double*>(accumulators);
           for (int64_t i = 0; i < n; ++i) values[i] = std::log(values[i]) + shifts[first + i];
           reducer_.finish(accumulators, first, n, schedule_.count, out);
         });
  }

 private:
  /// Results of runs that lie one after the other.
  void run_contiguous(const std::byte* x, std::byte* out) const {
    const int64_t n = schedule_.inner;
    parallel_for(schedule_.results, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n)),
                 [&](int64_t begin, int64_t end) {
                   constexpr int64_t kResults = 256;
                   alignas(64) double values[kResults];
                   for (int64_t first = begin; first < end; first += kResults) {
                     const int64_t count = std::min(kResults, end - first);
                     reducer_.loops.all_runs(values, x + first * n * item_, count, n);
                     reducer_.finish(reinterpret_cast<std::byte*>(values), first, count,
                                     schedule_.count, out);
                   }
                 });
  }

  /// Calls `done(first result, count, accumulators)` for all results, in parallel.
  template <class Done>
  void pass(const std::byte* x, const ReduceLoops& loops, const double* shifts, std::byte* partial,
            Done done) const {
    const int64_t tasks = schedule_.task_count();
    const int64_t cost =
        std::max<int64_t>(1, schedule_.count * schedule_.results / std::max<int64_t>(1, tasks));
    const int64_t grain = std::max<int64_t>(1, 32768 / cost);
    parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
      alignas(64) std::byte local[ReduceSchedule::kStrip * 8];
      for (int64_t index = begin; index < end; ++index) {
        const ReduceSchedule::Task task = schedule_.task(index);
        std::byte* const accumulators =
            schedule_.chunks > 1 ? partial + (task.chunk * schedule_.results + task.first) * 8
                                 : local;
        accumulate(x, loops, shifts ? shifts + task.first : nullptr, task, accumulators);
        if (schedule_.chunks == 1) done(task.first, task.width, accumulators);
      }
    });
    if (schedule_.chunks == 1) return;
    for (int64_t chunk = 1; chunk < schedule_.chunks; ++chunk)
      loops.combine(partial, partial + chunk * schedule_.results * 8, schedule_.results);
    done(0, schedule_.results, partial);
  }

  void accumulate(const std::byte* x, const ReduceLoops& loops, const double* shifts,
                  const ReduceSchedule::Task& task, std::byte* accumulators) const {
    if (schedule_.inner_kept) {
      loops.clear(accumulators, task.width);
      for (int64_t row = task.begin; row < task.end; ++row)
        fold(x, task.base + schedule_.row_offset(row), task.width, loops.rows, shifts,
             accumulators);
      return;
    }
    alignas(64) std::byte lanes[kMaxRunLanes * 8];
    const int64_t used = schedule_.lanes(loops);
    loops.clear(lanes, used);
    if (schedule_.split_run) {
      fold(x, task.base + task.begin, task.end - task.begin, loops.run, shifts, lanes);
    } else {
      for (int64_t row = task.begin; row < task.end; ++row)
        fold(x, task.base + schedule_.row_offset(row), schedule_.inner, loops.run, shifts, lanes);
    }
    loops.fold(lanes, used);
    std::memcpy(accumulators, lanes, 8);
  }

  /// Folds n elements from `at` on, converted and shifted if needed. `shifts` holds one value for a
  /// run, otherwise one per element.
  void fold(const std::byte* x, int64_t at, int64_t n, void (*loop)(void*, const void*, int64_t),
            const double* shifts, std::byte* accumulators) const {
    if (!load_ && !shifts) {
      loop(accumulators, x + at * item_, n);
      return;
    }
    const bool run = !schedule_.inner_kept;
    alignas(64) std::byte buffer[kBlock * 8];
    for (int64_t done = 0; done < n; done += kBlock) {
      const int64_t part = std::min(kBlock, n - done);
      const std::byte* const source = x + (at + done) * item_;
      if (load_)
        load_(source, 1, buffer, part);
      else
        std::memcpy(buffer, source, static_cast<size_t>(part * item_));
      if (shifts) {
        if (reducer_.compute == DType::kF32)
          shift(reinterpret_cast<float*>(buffer), part, run ? shifts : shifts + done, run);
        else
          shift(reinterpret_cast<double*>(buffer), part, run ? shifts : shifts + done, run);
        const void* in[] = {buffer};
        exp_(in, buffer, part, nullptr);
      }
      loop(run ? accumulators : accumulators + done * 8, buffer, part);
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

  ReduceSchedule schedule_;
  Reducer reducer_;
  ReduceLoops max_loops_{};
  Loop exp_ = nullptr;  ///< for kLogSumExp
  ConvertFn load_;
  int64_t item_;
  bool is_contiguous_ = false;
};

}  // namespace

std::optional<ReduceCall> reduce_call(const Op& op, const Attrs& attrs, size_t rank) {
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
  const auto* const entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                         [&](const Entry& e) { return e.name == op.name(); });
  if (entry == std::end(kEntries)) return std::nullopt;
  ReduceCall call{{}, entry->reduction, entry->form};
  const int at = op.attr_index("axis");
  // A 0-D tensor accepts axis 0 or -1, over which there is nothing to reduce.
  if (at < 0 || attrs[static_cast<size_t>(at)].is_none() || rank == 0) return call;
  call.axes = attrs[static_cast<size_t>(at)].as_ints();
  for (int64_t& axis : call.axes)
    if (axis < 0) axis += static_cast<int64_t>(rank);
  return call;
}

std::unique_ptr<Kernel> reduce(const Layout& x, const ReduceCall& call, DType result_type) {
  return std::make_unique<ReduceKernel>(x, call, result_type);
}

namespace {

/// Sums over runs of neighbors, with several partial sums side by side.
template <class T>
std::unique_ptr<Kernel> complex_run_sum(const ReduceSchedule& schedule, bool mean) {
  return make_kernel(
      [schedule, mean](const RunContext&, void* const* operands, void* const* results) {
        constexpr int64_t kLanes = 16;  // eight numbers
        const auto* const in = static_cast<const T*>(operands[0]);
        auto* const out = static_cast<T*>(results[0]);
        const double scale = mean ? 1 / static_cast<double>(schedule.count) : 1;
        parallel_for(
            schedule.results, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, schedule.count)),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                double sums[kLanes] = {};
                for (int64_t r = 0; r < schedule.repeats; ++r) {
                  const T* const run =
                      in + 2 * (offset_of(schedule.kept, i) + offset_of(schedule.reduced, r));
                  const int64_t n = 2 * schedule.inner;
                  int64_t k = 0;
                  for (; k + kLanes <= n; k += kLanes)
                    for (int64_t l = 0; l < kLanes; ++l) sums[l] += static_cast<double>(run[k + l]);
                  for (; k < n; ++k) sums[k % 2] += static_cast<double>(run[k]);
                }
                for (int64_t part = 0; part < 2; ++part) {
                  double sum = 0;
                  for (int64_t l = part; l < kLanes; l += 2) sum += sums[l];
                  out[2 * i + part] = static_cast<T>(sum * scale);
                }
              }
            });
      },
      0, "cpu:run_sum");
}

/// Products of complex numbers, one result at a time.
template <class T>
std::unique_ptr<Kernel> complex_product(const Layout& x, const std::vector<int64_t>& axes) {
  return make_kernel(
      [schedule = ReduceSchedule(x.shape, axes)](const RunContext&, void* const* operands,
                                                 void* const* results) {
        using Complex = std::complex<T>;
        const auto* const in = static_cast<const Complex*>(operands[0]);
        auto* const out = static_cast<Complex*>(results[0]);
        std::vector<ReduceSchedule::Axis> kept = schedule.kept, reduced = schedule.reduced;
        (schedule.inner_kept ? kept : reduced).push_back({schedule.inner, 1});
        parallel_for(schedule.results,
                     std::max<int64_t>(1, 8192 / std::max<int64_t>(1, schedule.count)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         const Complex* const from = in + offset_of(kept, i);
                         std::complex<double> product = 1;
                         for (int64_t k = 0; k < schedule.count; ++k)
                           product *= std::complex<double>(from[offset_of(reduced, k)]);
                         out[i] = Complex(product);
                       }
                     });
      },
      0, "cpu:product");
}

struct ComplexProblem {
  const KernelRequest& request;
  ReduceCall call;  ///< with its axes, also where they are all

  const Layout& x() const { return request.operands[0]; }
  DType result() const { return request.results[0].dtype; }
  /// Sums and means are those of the real and imaginary parts.
  bool is_sum() const {
    return call.reduction == Reduction::kSum && call.form != ReduceForm::kLogSumExp;
  }
};

double product_speedup(const ComplexProblem& p) {
  return p.call.reduction == Reduction::kProd ? kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_product(const ComplexProblem& p) {
  return p.x().dtype == DType::kC128 ? complex_product<double>(p.x(), p.call.axes)
                                     : complex_product<float>(p.x(), p.call.axes);
}

double run_sum_speedup(const ComplexProblem& p) {
  const bool fits = p.is_sum() && p.x().dtype == p.result() && !p.x().shape.empty() &&
                    !ReduceSchedule(p.x().shape, p.call.axes).inner_kept;
  return fits ? kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_run_sum(const ComplexProblem& p) {
  const ReduceSchedule schedule(p.x().shape, p.call.axes);
  const bool mean = p.call.form == ReduceForm::kMean;
  return p.x().dtype == DType::kC128 ? complex_run_sum<double>(schedule, mean)
                                     : complex_run_sum<float>(schedule, mean);
}

double parts_speedup(const ComplexProblem& p) { return p.is_sum() ? 1 : 0; }

/// The parts are an axis of size 2.
std::unique_ptr<Kernel> prepare_parts(const ComplexProblem& p) {
  Dims parts = p.x().shape;
  ReduceCall call = p.call;
  if (parts.empty()) {  // no axes would mean all
    parts.push_back(1);
    call.axes = {0};
  }
  parts.push_back(2);
  return reduce(Layout::contiguous(real_type(p.x().dtype), parts), call, real_type(p.result()));
}

/// Whether all or any elements are not 0 is a question to their truth values: no algorithm here.
constexpr Algorithm<ComplexProblem> kComplex[] = {
    {"product", product_speedup, prepare_product},
    {"run_sum", run_sum_speedup, prepare_run_sum},
    {"parts", parts_speedup, prepare_parts},
};

}  // namespace

std::unique_ptr<Kernel> prepare_reduce(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const DType result = request.results[0].dtype;
  const auto call = reduce_call(request.op, request.attrs, x.shape.size());
  if (!call) return nullptr;
  if (!is_complex(x.dtype) || !is_complex(result)) return reduce(x, *call, result);
  ComplexProblem problem{request, *call};
  if (problem.call.axes.empty())
    for (size_t i = 0; i < x.shape.size(); ++i)
      problem.call.axes.push_back(static_cast<int64_t>(i));
  return prepare_best<ComplexProblem>(kComplex, problem);
}

}  // namespace paddle::cpu
