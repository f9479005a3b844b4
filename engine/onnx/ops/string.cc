// String operators and TfIdfVectorizer.

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/limits.h"
#include "base/utf8.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/regex.h"

namespace paddle::onnx {
namespace {

/// Code points of UTF-8; invalid bytes stand for themselves.
std::vector<uint32_t> code_points(const std::string& s) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < s.size();) {
    const auto lead = static_cast<uint8_t>(s[i]);
    const size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
    bool good = i + more < s.size();
    for (size_t k = 1; good && k <= more; ++k) {
      const auto byte = static_cast<uint8_t>(s[i + k]);
      good = (byte & 0xc0) == 0x80;
      point = point << 6 | (byte & 0x3fu);
    }
    out.push_back(good ? point : lead);
    i += good ? more + 1 : 1;
  }
  return out;
}

/// Changes the case as `action` says (LOWER, UPPER, NONE).
std::string change_case(const std::string& s, const std::string& action) {
  if (action == "NONE") return s;
  static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::string out;
  for (const uint32_t p : code_points(s)) {
    const auto wide = static_cast<wint_t>(p);
    append_utf8(out, static_cast<uint32_t>(action == "LOWER" ? towlower_l(wide, kUnicode)
                                                             : towupper_l(wide, kUnicode)));
  }
  return out;
}

Values normalize(NodeCall& c) {
  const StringArray& x = c.value(0).strings();
  const std::string action = c.string_attr("case_change_action", "NONE");
  const bool exact = c.bool_attr("is_case_sensitive", false);
  c.check(action == "NONE" || action == "LOWER" || action == "UPPER",
          "unknown case_change_action '", action, "'");
  c.check(x.shape.size() == 1 || (x.shape.size() == 2 && x.shape[0] == 1),
          "the input must be a vector or one row");
  const auto key = [&](const std::string& s) { return exact ? s : change_case(s, "LOWER"); };
  std::vector<std::string> stop;
  for (const std::string& s : c.strings_attr("stopwords")) stop.push_back(key(s));
  std::vector<std::string> out;
  for (const std::string& s : x.items)
    if (std::find(stop.begin(), stop.end(), key(s)) == stop.end())
      out.push_back(change_case(s, action));
  if (out.empty()) out.emplace_back();
  const auto n = static_cast<int64_t>(out.size());
  return {Value::of_strings(x.shape.size() == 1 ? Dims{n} : Dims{1, n}, std::move(out))};
}

/// Shapes broadcast as in arithmetic.
Values concat_strings(NodeCall& c) {
  const StringArray &x = c.value(0).strings(), &y = c.value(1).strings();
  const size_t rank = std::max(x.shape.size(), y.shape.size());
  const auto size_of = [&](const StringArray& s, size_t i) {
    const size_t lead = rank - s.shape.size();
    return i < lead ? 1 : s.shape[i - lead];
  };
  Dims shape;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t a = size_of(x, i), b = size_of(y, i);
    c.check(a == b || a == 1 || b == 1, "the shapes ", str(x.shape), " and ", str(y.shape),
            " do not broadcast");
    shape.push_back(a == 1 ? b : a);
  }
  const int64_t count = element_count(std::span<const int64_t>(shape));
  const auto item = [&](const StringArray& s, int64_t flat) -> const std::string& {
    int64_t at = 0, stride = 1;
    for (size_t i = rank; i-- > 0;) {
      const int64_t size = size_of(s, i);
      at += (size == 1 ? 0 : flat % shape[i]) * stride;
      stride *= size;
      flat /= shape[i];
    }
    return s.items[static_cast<size_t>(at)];
  };
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(item(x, i) + item(y, i));
  return {Value::of_strings(shape, std::move(out))};
}

/// Splits at a delimiter, or at runs of white space; at most `most` times.
std::vector<std::string> split_string(const std::string& s, const std::string& delimiter,
                                      int64_t most) {
  std::vector<std::string> out;
  size_t at = 0;
  const char* const kSpace = " \t\n\r\f\v";
  if (delimiter.empty()) {
    while ((at = s.find_first_not_of(kSpace, at)) != std::string::npos) {
      const bool last = most >= 0 && static_cast<int64_t>(out.size()) == most;
      const size_t end = last ? std::string::npos : s.find_first_of(kSpace, at);
      out.push_back(s.substr(at, end == std::string::npos ? end : end - at));
      if (end == std::string::npos) break;
      at = end;
    }
    return out;
  }
  while (most < 0 || static_cast<int64_t>(out.size()) < most) {
    const size_t end = s.find(delimiter, at);
    if (end == std::string::npos) break;
    out.push_back(s.substr(at, end - at));
    at = end + delimiter.size();
  }
  out.push_back(s.substr(at));
  return out;
}

Values split_strings(NodeCall& c) {
  const StringArray& x = c.value(0).strings();
  const std::string delimiter = c.string_attr("delimiter", "");
  const int64_t most = c.int_attr("maxsplit", -1);
  std::vector<std::vector<std::string>> all;
  size_t longest = 0;
  Array counts = Array::empty(DType::kI64, x.shape);
  for (size_t i = 0; i < x.items.size(); ++i) {
    all.push_back(split_string(x.items[i], delimiter, most));
    longest = std::max(longest, all.back().size());
    counts.data<int64_t>()[i] = static_cast<int64_t>(all.back().size());
  }
  c.check(all.size() * longest <= size_t{1} << 26, "there are too many pieces");
  std::vector<std::string> out;
  for (auto& row : all) {
    row.resize(longest);
    out.insert(out.end(), row.begin(), row.end());
  }
  Dims shape = x.shape;
  shape.push_back(static_cast<int64_t>(longest));
  return {Value::of_strings(shape, std::move(out)), Tensor(counts)};
}

Values full_match(NodeCall& c) {
  const StringArray& x = c.value(0).strings();
  const Regex pattern(c.string_attr("pattern", ""));
  Array out = Array::empty(DType::kBool, x.shape);
  for (size_t i = 0; i < x.items.size(); ++i) out.data<bool>()[i] = pattern.matches(x.items[i]);
  return {Tensor(out)};
}

// --- n-grams ---

/// Elements as text, so that integers and strings are handled alike.
std::vector<std::string> elements_of(const NodeCall& c) {
  if (c.value(0).kind() == Value::Kind::kStrings) return c.value(0).strings().items;
  std::vector<std::string> out;
  for (const int64_t v : c.constant_ints(0)) out.push_back(std::to_string(v));
  return out;
}

/// Counts of the pool's n-grams in a row, with elements up to max_skip_count apart.
class NGrams {
 public:
  explicit NGrams(const NodeCall& c)
      : least_(c.int_attr("min_gram_length", 1)),
        most_(c.int_attr("max_gram_length", 1)),
        skips_(c.int_attr("max_skip_count", 0)) {
    std::vector<std::string> pool = c.strings_attr("pool_strings");
    for (const int64_t v : c.ints_attr("pool_int64s")) pool.push_back(std::to_string(v));
    const auto starts = c.ints_attr("ngram_counts"), indices = c.ints_attr("ngram_indexes");
    c.check(least_ >= 1 && most_ >= least_ && most_ <= 64 && skips_ >= 0 && skips_ <= 1024,
            "the lengths of n-grams are out of range");
    size_t id = 0;
    for (size_t n = 1; n <= starts.size(); ++n) {
      const auto size = static_cast<int64_t>(pool.size());
      const int64_t end = n < starts.size() ? starts[n] : size;
      c.check(starts[n - 1] >= 0 && starts[n - 1] <= end && end <= size &&
                  (end - starts[n - 1]) % static_cast<int64_t>(n) == 0,
              "ngram_counts do not match the pool");
      for (int64_t at = starts[n - 1]; at < end; at += static_cast<int64_t>(n), ++id) {
        c.check(id < indices.size() && indices[id] >= 0 && indices[id] < 1 << 26,
                "ngram_indexes do not match the pool");
        const std::vector<std::string> gram(pool.begin() + at,
                                            pool.begin() + at + static_cast<int64_t>(n));
        grams_[gram] = {indices[id], id};
        width_ = std::max(width_, indices[id] + 1);
      }
    }
  }
  int64_t width() const { return width_; }

  /// Calls `found(index, ngram)` for each n-gram of the row.
  template <class Found>
  void search(std::span<const std::string> row, Found&& found) const {
    const auto size = static_cast<int64_t>(row.size());
    for (int64_t n = least_; n <= most_; ++n)
      for (int64_t skip = 0; skip <= (n == 1 ? 0 : skips_); ++skip)
        for (int64_t at = 0; at + (n - 1) * (skip + 1) < size; ++at) {
          std::vector<std::string> gram;
          for (int64_t k = 0; k < n; ++k)
            gram.push_back(row[static_cast<size_t>(at + k * (skip + 1))]);
          if (const auto it = grams_.find(gram); it != grams_.end())
            found(it->second.first, it->second.second);
        }
  }

 private:
  int64_t least_, most_, skips_, width_ = 0;
  std::map<std::vector<std::string>, std::pair<int64_t, size_t>> grams_;
};

Values tf_idf(NodeCall& c) {
  const NGrams grams(c);
  const std::string mode = c.string_attr("mode", "TF");
  c.check(mode == "TF" || mode == "IDF" || mode == "TFIDF", "unknown mode '", mode, "'");
  const auto weights = c.floats_attr("weights");
  const auto items = elements_of(c);
  const Shape in = c.value(0).shape();
  c.check(in.size() == 1 || in.size() == 2, "the input must be a vector or a matrix");
  const int64_t rows = in.size() == 2 ? in[0].value() : 1, columns = in.back().value();
  c.check(rows <= limits().memory / 2 / static_cast<int64_t>(sizeof(float)) /
                      std::max<int64_t>(grams.width(), 1),
          "counts of ", rows, " rows and ", grams.width(),
          " n-grams take more than half of the memory");
  Array out =
      Array::zeros(DType::kF32, in.size() == 2 ? Dims{rows, grams.width()} : Dims{grams.width()});
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = out.data<float>() + r * grams.width();
    const auto part =
        std::span(items).subspan(static_cast<size_t>(r * columns), static_cast<size_t>(columns));
    grams.search(part, [&](int64_t index, size_t id) {
      const float weight = id < weights.size() ? static_cast<float>(weights[id]) : 1.0f;
      if (mode == "IDF")
        row[index] = weight;
      else
        row[index] += mode == "TF" ? 1.0f : weight;
    });
  }
  return {Tensor(out)};
}

}  // namespace

OperatorTable string_operators() {
  static constexpr Operator operators[] = {
      {"StringNormalizer", 1, normalize}, {"StringConcat", 1, concat_strings},
      {"StringSplit", 1, split_strings},  {"RegexFullMatch", 1, full_match},
      {"TfIdfVectorizer", 1, tf_idf},
  };
  return operators;
}

}  // namespace paddle::onnx
