// Viterbi paths, beams followed from their ends, and edit distances.

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "kernels/common/read_values.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/generated/sequence.h"

namespace paddle::cpu {
namespace {

/// The best path of one sequence; `tags` receives as many as there are steps.
template <class T>
T best_path(const T* potentials, const T* transitions, int64_t steps, int64_t tags, bool ends,
            int64_t* path) {
  if (steps == 0) return 0;
  std::vector<T> score(potentials, potentials + tags), next(score.size());
  if (ends)
    for (int64_t k = 0; k < tags; ++k)
      score[static_cast<size_t>(k)] += transitions[(tags - 1) * tags + k];
  std::vector<int32_t> from(static_cast<size_t>(steps * tags));
  for (int64_t t = 1; t < steps; ++t) {
    int32_t* const origin = from.data() + t * tags;
    std::fill(next.begin(), next.end(), -std::numeric_limits<T>::infinity());
    std::fill_n(origin, tags, 0);
    for (int64_t i = 0; i < tags; ++i)
      for (int64_t k = 0; k < tags; ++k) {
        const T s = score[static_cast<size_t>(i)] + transitions[i * tags + k];
        if (s > next[static_cast<size_t>(k)]) {
          next[static_cast<size_t>(k)] = s;
          origin[k] = static_cast<int32_t>(i);
        }
      }
    for (int64_t k = 0; k < tags; ++k)
      score[static_cast<size_t>(k)] = next[static_cast<size_t>(k)] + potentials[t * tags + k];
  }
  if (ends)
    for (int64_t k = 0; k < tags; ++k)
      score[static_cast<size_t>(k)] += transitions[(tags - 2) * tags + k];
  const auto best = std::max_element(score.begin(), score.end());
  int64_t tag = best - score.begin();
  for (int64_t t = steps; t-- > 0;) {
    path[t] = tag;
    tag = from[static_cast<size_t>(t * tags + tag)];
  }
  return *best;
}

template <class T>
std::unique_ptr<Kernel> viterbi_kernel(const KernelRequest& request) {
  const bool ends = TextViterbiDecodeAttrs(request.attrs).include_bos_eos_tag;
  const Dims shape = request.operands[0].shape;
  const Layout lengths = request.operands[2];
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const auto steps = values_of<int64_t>(lengths, operands[2]);
    int64_t longest = 0;
    for (const int64_t n : steps) {
      if (n < 0 || n > shape[1])
        fail(ErrorCode::kData, "text_viterbi_decode: the length ", n, " is not from 0 to ",
             shape[1]);
      longest = std::max(longest, n);
    }
    T* const scores = static_cast<T*>(context.allocator->allocate(0, {shape[0]}));
    auto* const paths = static_cast<int64_t*>(context.allocator->allocate(1, {shape[0], longest}));
    std::fill_n(paths, shape[0] * longest, int64_t{0});
    parallel_for(shape[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        scores[b] = best_path(static_cast<const T*>(operands[0]) + b * shape[1] * shape[2],
                              static_cast<const T*>(operands[1]), steps[static_cast<size_t>(b)],
                              shape[2], ends, paths + b * longest);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_text_viterbi_decode(const KernelRequest& request) {
  return request.operands[0].dtype == DType::kF32 ? viterbi_kernel<float>(request)
                                                  : viterbi_kernel<double>(request);
}

std::unique_ptr<Kernel> prepare_gather_tree(const KernelRequest& request) {
  const Dims shape = request.operands[0].shape;
  return visit_dtype(request.operands[0].dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      const T* const ids = static_cast<const T*>(operands[0]);
      const T* const parents = static_cast<const T*>(operands[1]);
      T* const out = static_cast<T*>(results[0]);
      for (int64_t b = 0; b < shape[1]; ++b)
        for (int64_t k = 0; k < shape[2]; ++k) {
          int64_t beam = k;
          for (int64_t t = shape[0]; t-- > 0;) {
            const int64_t row = (t * shape[1] + b) * shape[2];
            out[row + k] = ids[row + beam];
            beam = static_cast<int64_t>(parents[row + beam]);
            if (t > 0 && (beam < 0 || beam >= shape[2]))
              fail(ErrorCode::kData, "gather_tree: the parent ", beam, " is not one of ", shape[2],
                   " beams");
          }
        }
    });
  });
}

std::unique_ptr<Kernel> prepare_edit_distance(const KernelRequest& request) {
  const EditDistanceAttrs attrs(request.attrs);
  const std::vector<Layout> layouts(request.operands.begin(), request.operands.end());
  const int64_t batch = layouts[0].shape[0];
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const auto sequences = [&](size_t i, size_t length_at) {
      const auto all = values_of<int64_t>(layouts[i], operands[i]);
      const int64_t width = layouts[i].shape[1];
      std::vector<int64_t> lengths(static_cast<size_t>(batch), width);
      if (layouts[length_at].present)
        lengths = values_of<int64_t>(layouts[length_at], operands[length_at]);
      std::vector<std::vector<int64_t>> out;
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t n = lengths[static_cast<size_t>(b)];
        if (n < 0 || n > width)
          fail(ErrorCode::kData, "edit_distance: the length ", n, " is not from 0 to ", width);
        auto& own = out.emplace_back(all.begin() + b * width, all.begin() + b * width + n);
        if (attrs.ignored_tokens)
          std::erase_if(own, [&](int64_t token) {
            return std::find(attrs.ignored_tokens->begin(), attrs.ignored_tokens->end(), token) !=
                   attrs.ignored_tokens->end();
          });
      }
      return out;
    };
    const auto inputs = sequences(0, 2), labels = sequences(1, 3);
    float* const out = static_cast<float*>(results[0]);
    *static_cast<int64_t*>(results[1]) = batch;
    parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> row;
      for (int64_t b = begin; b < end; ++b) {
        const auto &x = inputs[static_cast<size_t>(b)], &y = labels[static_cast<size_t>(b)];
        row.resize(y.size() + 1);
        std::iota(row.begin(), row.end(), int64_t{0});
        for (size_t i = 0; i < x.size(); ++i) {
          int64_t diagonal = row[0];
          row[0] = static_cast<int64_t>(i) + 1;
          for (size_t k = 0; k < y.size(); ++k) {
            const int64_t replaced = diagonal + (x[i] == y[k] ? 0 : 1);
            diagonal = row[k + 1];
            row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
          }
        }
        const auto distance = static_cast<float>(row.back());
        if (attrs.normalized && y.empty() && !x.empty())
          fail(ErrorCode::kData, "edit_distance: the label of sequence ", b,
               " is empty, so that its distance has no normalized value");
        out[b] =
            attrs.normalized && !y.empty() ? distance / static_cast<float>(y.size()) : distance;
      }
    });
  });
}

}  // namespace paddle::cpu
