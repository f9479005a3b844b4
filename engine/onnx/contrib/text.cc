// Text and token operators of com.microsoft: tokenization, hashing, repeated n-grams, speculative
// decoding and dynamic time warping.

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/limits.h"
#include "base/utf8.h"
#include "decoding/logits_processor.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/regex.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr size_t kMaxPieces = size_t{1} << 26;

// --- Tokenizer ---

using Pieces = std::vector<std::string>;

/// Length of the UTF-8 character at i; an invalid byte is one character.
size_t character_at(const std::string& s, size_t i) {
  return std::max<size_t>(utf8_character(s, i).length, 1);
}

int64_t characters(const std::string& s) {
  int64_t count = 0;
  for (size_t i = 0; i < s.size(); i += character_at(s, i)) ++count;
  return count;
}

Pieces single_characters(const std::string& s) {
  Pieces out;
  for (size_t i = 0; i < s.size();) {
    const size_t length = character_at(s, i);
    out.push_back(s.substr(i, length));
    i += length;
  }
  return out;
}

/// Splits texts at matches; drops pieces of fewer characters than the minimum.
Pieces split_at(const Pieces& texts, const Regex& separator, int64_t min_characters) {
  Pieces out;
  const auto add = [&](const std::string& text, size_t begin, size_t end) {
    if (std::string piece = text.substr(begin, end - begin); characters(piece) >= min_characters)
      out.push_back(std::move(piece));
  };
  for (const std::string& text : texts) {
    size_t at = 0;
    for (auto m = separator.find(text, 0); m; m = separator.find(text, at)) {
      if (m->begin == m->end && m->begin == text.size()) break;
      add(text, at, m->begin);
      at = m->end > m->begin ? m->end : m->begin + character_at(text, m->begin);
    }
    add(text, at, text.size());
  }
  return out;
}

Pieces matches_in(const std::string& text, const Regex& pattern, int64_t min_characters) {
  Pieces out;
  for (size_t at = 0; at < text.size();) {
    const auto m = pattern.find(text, at);
    if (!m) break;
    std::string piece = text.substr(m->begin, m->end - m->begin);
    const bool taken = !piece.empty() && characters(piece) >= min_characters;
    at = taken ? m->end : m->begin + (m->begin < text.size() ? character_at(text, m->begin) : 1);
    if (taken) out.push_back(std::move(piece));
  }
  return out;
}

/// The pieces of each string along a new last axis, padded with `pad_value`.
Values tokenizer(NodeCall& c) {
  const StringArray& x = c.value(0).strings();
  c.check(x.shape.size() == 1 || x.shape.size() == 2, "the input must be a vector or a matrix");
  const auto separators = c.strings_attr("separators");
  const std::string expression = c.string_attr("tokenexp", "");
  c.check(separators.empty() != expression.empty(), "expected one of separators and tokenexp");
  const int64_t min_characters = c.int_attr("mincharnum", 1);
  const bool marks = c.bool_attr("mark", false);
  const bool single = expression == "." || (separators.size() == 1 && separators[0].empty());
  std::vector<Regex> patterns;
  if (!single && !expression.empty()) patterns.emplace_back(expression);
  for (const std::string& s : separators) {
    c.check(single || !s.empty(), "a separator is empty");
    if (!single) patterns.emplace_back(s);
  }
  std::vector<Pieces> rows;
  size_t longest = 0;
  for (const std::string& text : x.items) {
    Pieces row = {text};
    if (single)
      row = single_characters(text);
    else if (!expression.empty())
      row = matches_in(text, patterns[0], min_characters);
    else
      for (const Regex& p : patterns) row = split_at(row, p, min_characters);
    longest = std::max(longest, row.size());
    rows.push_back(std::move(row));
  }
  Dims shape = x.shape;
  if (!x.items.empty()) {
    if (marks && longest > 0) longest += 2;
    c.check(longest <= kMaxPieces / x.items.size(), "there are too many pieces");
    shape.push_back(static_cast<int64_t>(longest));
  }
  std::vector<std::string> out;
  for (Pieces& row : rows) {
    if (longest == 0) break;
    if (marks) {
      row.insert(row.begin(), "\x02");
      row.emplace_back("\x03");
    }
    row.resize(longest, c.string_attr("pad_value", ""));
    out.insert(out.end(), row.begin(), row.end());
  }
  return {Value::of_strings(std::move(shape), std::move(out))};
}

// --- hashes ---

/// MurmurHash3_x86_32 (Appleby, https://github.com/aappleby/smhasher).
uint32_t murmur3(const std::byte* data, size_t size, uint32_t seed) {
  const auto scrambled = [](uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  uint32_t h = seed;
  size_t i = 0;
  for (; i + 4 <= size; i += 4) {
    uint32_t k = 0;
    std::memcpy(&k, data + i, 4);
    h = std::rotl(h ^ scrambled(k), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t k = size; k > i; --k) rest = rest << 8 | std::to_integer<uint32_t>(data[k - 1]);
  if (i < size) h ^= scrambled(rest);
  h ^= static_cast<uint32_t>(size);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

Values murmur_hash(NodeCall& c) {
  const auto seed = static_cast<uint32_t>(c.int_attr("seed", 0));
  const DType to = c.bool_attr("positive", true) ? DType::kU32 : DType::kI32;
  const auto hashed = [&](const Dims& shape, auto&& bytes_of) {
    Array out = Array::empty(to, shape);
    auto* at = reinterpret_cast<uint32_t*>(out.storage->data());
    for (int64_t i = 0; i < out.size(); ++i) {
      const std::span<const std::byte> bytes = bytes_of(i);
      at[i] = murmur3(bytes.data(), bytes.size(), seed);
    }
    return Values{Tensor(out)};
  };
  if (c.value(0).kind() == Value::Kind::kStrings) {
    const StringArray& x = c.value(0).strings();
    return hashed(x.shape, [&](int64_t i) {
      return std::as_bytes(std::span(x.items.at(static_cast<size_t>(i))));
    });
  }
  const Array x = c.constant_array(0).contiguous();
  c.check(info(x.dtype).has_kernels && item_size(x.dtype) >= 4, "the input is ",
          paddle::text(x.dtype));
  const auto size = static_cast<size_t>(item_size(x.dtype));
  return hashed(x.shape, [&](int64_t i) {
    return std::span(static_cast<const std::byte*>(x.raw()) + static_cast<size_t>(i) * size, size);
  });
}

// --- n-grams ---

/// Sets the scores of tokens that would repeat an n-gram to minus infinity.
Values ngram_repeat_block(NodeCall& c) {
  const int64_t n = c.int_attr("ngram_size", 0);
  c.check(n > 0, "ngram_size is ", n);
  const Array ids = c.constant_array(0).cast(DType::kI64).contiguous();
  const Array given = c.constant_array(1);
  c.check(ids.ndim() == 2 && given.ndim() == 2 && ids.shape[0] == given.shape[0] &&
              given.dtype == DType::kF32,
          "ids ", str(ids.shape), " do not match scores ", str(given.shape));
  Array scores = Array::empty(DType::kF32, given.shape);
  const Array from = given.contiguous();
  std::copy_n(from.data<float>(), from.size(), scores.data<float>());
  const int64_t length = ids.shape[1], words = given.shape[1];
  for (int64_t b = 0; b < ids.shape[0]; ++b) {
    const std::span<const int64_t> row(ids.data<int64_t>() + b * length,
                                       static_cast<size_t>(length));
    decoding::for_each_repeated_ngram_token(row, n, [&](int64_t word) {
      c.check(word >= 0 && word < words, "the id ", word, " is out of range");
      scores.data<float>()[b * words + word] = -std::numeric_limits<float>::infinity();
    });
  }
  return {Tensor(scores)};
}

/// Speculative decoding: accepts predicted tokens while they equal the source, plus the first
/// different one; then returns the position after the unique occurrence of the last n-gram in the
/// source.
Values bifurcation_detector(NodeCall& c) {
  const int64_t min_n = c.int_attr("min_ngram_size", 1), max_n = c.int_attr("max_ngram_size", 3);
  c.check(min_n > 0 && max_n >= min_n, "min_ngram_size and max_ngram_size are out of range");
  const auto source = c.constant_ints(0);
  auto tokens = c.constant_ints(1);
  const auto size = static_cast<int64_t>(source.size());
  if (c.has_input(3)) {
    const auto predicted = c.constant_ints(3);
    const int64_t start = c.constant_int(2);
    c.check(
        start >= 0 && start <= size && static_cast<int64_t>(predicted.size()) == size + 1 - start,
        "the predicted tokens do not match the source from token ", start);
    const auto apart =
        std::mismatch(predicted.begin(), predicted.end() - 1, source.begin() + start);
    tokens.insert(tokens.end(), predicted.begin(), apart.first + 1);
  }
  int64_t index = -1;
  for (int64_t n = min_n; n <= max_n && n <= static_cast<int64_t>(tokens.size()); ++n) {
    const auto gram = tokens.end() - n;
    const auto found = std::search(source.begin(), source.end(), gram, tokens.end());
    if (found == source.end()) break;
    index = found - source.begin() + n;
    if (index >= size) break;
    if (std::search(found + 1, source.end(), gram, tokens.end()) != source.end()) index = -1;
  }
  return {int_vector(tokens), ops::reshape(int_vector({index}), c.value(2).shape())};
}

// --- DynamicTimeWarping ---

/// The cheapest path through a cost matrix from its first to its last element.
Values dynamic_time_warping(NodeCall& c) {
  Array costs = c.constant_array(0).cast(DType::kF32).contiguous();
  c.check(costs.ndim() == 2 || (costs.ndim() == 3 && costs.shape[0] == 1),
          "the costs must be a matrix, not ", str(costs.shape));
  const int64_t rows = costs.shape[costs.shape.size() - 2], columns = costs.shape.back();
  c.check(rows > 0 && columns > 0, "there are no costs");
  c.check((rows + 1) <= limits().memory / 8 / (columns + 1), "the costs are too many");
  enum Move : int8_t { kBoth, kRow, kColumn };
  constexpr float kFar = std::numeric_limits<float>::infinity();
  const int64_t width = columns + 1;
  std::vector<float> sums(static_cast<size_t>((rows + 1) * width), kFar);
  std::vector<int8_t> moves(sums.size(), kColumn);
  sums[0] = 0;
  for (int64_t c2 = 1; c2 <= columns; ++c2)
    for (int64_t r = 1; r <= rows; ++r) {
      const auto at = static_cast<size_t>(r * width + c2);
      const float both = sums[at - static_cast<size_t>(width) - 1],
                  row = sums[at - static_cast<size_t>(width)], column = sums[at - 1];
      const Move move = both < row && both < column  ? kBoth
                        : row < both && row < column ? kRow
                                                     : kColumn;
      const float before = move == kBoth ? both : move == kRow ? row : column;
      sums[at] = before + costs.data<float>()[(r - 1) * columns + c2 - 1];
      moves[at] = move;
    }
  std::vector<int32_t> path_rows, path_columns;
  for (int64_t r = rows, k = columns; r > 0 || k > 0;) {
    path_rows.push_back(static_cast<int32_t>(r - 1));
    path_columns.push_back(static_cast<int32_t>(k - 1));
    const int8_t move = r == 0   ? int8_t{kColumn}
                        : k == 0 ? int8_t{kRow}
                                 : moves[static_cast<size_t>(r * width + k)];
    if (move != kColumn) --r;
    if (move != kRow) --k;
  }
  const auto steps = static_cast<int64_t>(path_rows.size());
  Array out = Array::empty(DType::kI32, {2, steps});
  std::reverse_copy(path_rows.begin(), path_rows.end(), out.data<int32_t>());
  std::reverse_copy(path_columns.begin(), path_columns.end(), out.data<int32_t>() + steps);
  return {Tensor(out)};
}

}  // namespace

OperatorTable contrib_text_operators() {
  static constexpr Operator operators[] = {
      {"BifurcationDetector", 1, bifurcation_detector},
      {"DynamicTimeWarping", 1, dynamic_time_warping},
      {"MurmurHash3", 1, murmur_hash},
      {"NGramRepeatBlock", 1, ngram_repeat_block},
      {"Tokenizer", 1, tokenizer},
  };
  return operators;
}

}  // namespace paddle::onnx
