#include "infer/beam_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "data/loader.h"

namespace paddle::infer {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Beam {
  std::vector<int64_t> tokens;
  double sum = 0;  ///< of log-probabilities
};

struct Candidate {
  double sum = kNever;
  size_t beam = 0;
  int64_t token = 0;
};

/// Each row `times` times in a row.
Array repeated_rows(const Array& array, int64_t times) {
  const Array from = array.contiguous();
  if (times == 1 || from.shape.empty()) return from;
  Dims shape = from.shape;
  shape[0] *= times;
  Array out = Array::empty(from.dtype, shape);
  if (from.shape[0] == 0) return out;
  const auto bytes = static_cast<size_t>(storage_bytes(from.dtype, from.size() / from.shape[0]));
  for (int64_t row = 0; row < shape[0]; ++row)
    std::memcpy(
        static_cast<std::byte*>(out.raw()) + static_cast<size_t>(row) * bytes,
        static_cast<const std::byte*>(from.raw()) + static_cast<size_t>(row / times) * bytes,
        bytes);
  return out;
}

/// The sequences of one row of the inputs.
class RowSearch {
 public:
  explicit RowSearch(const SearchOptions& options) : options_(options), beams_(1) {}

  const std::vector<Beam>& beams() const { return beams_; }
  bool is_done() const { return beams_.empty(); }

  /// Extends each beam by the scores of its next token, from `begin[beam]` on.
  void extend(const float* scores, const std::vector<int64_t>& begin, int64_t vocab_size) {
    std::vector<Candidate> all;
    for (size_t b = 0; b < beams_.size(); ++b) {
      double top = kNever, sum = 0;
      for (int64_t w = 0; w < vocab_size; ++w) top = std::max(top, number(scores, begin[b] + w));
      for (int64_t w = 0; w < vocab_size; ++w) sum += std::exp(number(scores, begin[b] + w) - top);
      const double base = beams_[b].sum - top - std::log(sum);
      for (int64_t w = 0; w < vocab_size; ++w)
        all.push_back({base + number(scores, begin[b] + w), b, w});
    }
    const auto most = std::min(all.size(), static_cast<size_t>(2 * options_.beams));
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return a.sum != b.sum     ? a.sum > b.sum
                               : a.beam != b.beam ? a.beam < b.beam
                                                  : a.token < b.token;
                      });
    all.resize(most);
    std::vector<Beam> next;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const Candidate& each = all[rank];
      Beam beam = beams_[each.beam];
      beam.sum = each.sum;
      if (each.token == options_.end) {
        // An end that other beams outrank may still be the best of its length.
        if (rank < static_cast<size_t>(options_.beams)) finish(beam, 1);
        continue;
      }
      if (next.size() == static_cast<size_t>(options_.beams)) continue;
      beam.tokens.push_back(each.token);
      next.push_back(std::move(beam));
    }
    beams_ = std::move(next);
    stop();
  }

  SearchResult result() const { return best_; }

 private:
  static double number(const float* scores, int64_t at) {
    const double v = scores[at];
    if (std::isnan(v))
      fail(ErrorCode::kModel, "the model's scores are NaN; its weights are not usable");
    return v;
  }
  void finish(const Beam& beam, size_t ends) {
    const double score =
        beam.sum / static_cast<double>(std::max<size_t>(beam.tokens.size() + ends, 1));
    if (is_found_ && score <= best_.score) return;
    is_found_ = true;
    best_ = {beam.tokens, score};
  }
  /// Ends where no beam can become better than what is found, or at the largest length.
  void stop() {
    if (beams_.empty()) return;
    const auto length = static_cast<int64_t>(beams_[0].tokens.size());
    if (length >= options_.max_length) {
      for (const Beam& beam : beams_) finish(beam, 0);
      beams_.clear();
      return;
    }
    // At best, all further tokens are certain.
    const double best = beams_[0].sum / static_cast<double>(options_.max_length + 1);
    if (is_found_ && (options_.beams == 1 || best_.score >= best)) beams_.clear();
  }

  SearchOptions options_;
  std::vector<Beam> beams_;
  SearchResult best_;
  bool is_found_ = false;
};

/// The tokens of all beams, padded with zeros; rows of finished beams are zeros.
Array written(const std::vector<RowSearch>& rows, DType dtype, int64_t beams, int64_t length) {
  Array out = Array::zeros(dtype, {static_cast<int64_t>(rows.size()) * beams, length});
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t row = 0; row < rows.size(); ++row)
      for (size_t b = 0; b < rows[row].beams().size(); ++b) {
        const auto& tokens = rows[row].beams()[b].tokens;
        T* const to =
            out.data<T>() + (static_cast<int64_t>(row) * beams + static_cast<int64_t>(b)) * length;
        for (size_t i = 0; i < tokens.size(); ++i) to[i] = static_cast<T>(tokens[i]);
      }
  });
  return out;
}

}  // namespace

std::vector<SearchResult> beam_search(const ModelRun& run, const std::vector<Array>& inputs,
                                      const SearchOptions& options) {
  const int64_t beams = options.beams;
  std::vector<Array> all(inputs.size());
  int64_t count = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i == options.target) continue;
    count = inputs[i].shape.empty() ? count : inputs[i].shape[0];
    all[i] = repeated_rows(inputs[i], beams);
  }
  std::vector<RowSearch> rows(static_cast<size_t>(count), RowSearch(options));
  for (int64_t step = 0; step < options.max_length; ++step) {
    if (std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.is_done(); })) break;
    const int64_t length = data::padded_length(std::max<int64_t>(step, 1), options.max_length);
    all[options.target] = written(rows, DType::kI64, beams, length);
    const Array scores = run(all)[options.scores].cast(DType::kF32).contiguous();
    if (scores.shape.size() != 3 || scores.shape[0] != count * beams ||
        scores.shape[1] != length + 1)
      fail(ErrorCode::kModel, "the model's scores are ", str(scores.shape), ", expected [",
           count * beams, ", ", length + 1, ", tokens]: next-token logits for each prefix of ",
           "the target");
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows[row].is_done()) continue;
      std::vector<int64_t> begin;
      for (size_t b = 0; b < rows[row].beams().size(); ++b)
        begin.push_back(
            ((static_cast<int64_t>(row) * beams + static_cast<int64_t>(b)) * scores.shape[1] +
             step) *
            scores.shape[2]);
      rows[row].extend(scores.data<float>(), begin, scores.shape[2]);
    }
  }
  std::vector<SearchResult> out;
  for (const RowSearch& row : rows) out.push_back(row.result());
  return out;
}

}  // namespace paddle::infer
