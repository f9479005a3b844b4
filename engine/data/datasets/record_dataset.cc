// Records with columns (record_source.h): numbers, categories, texts, images and sounds gathered
// into fields. Opening one finds the records and, where a field asks for them, the statistics or
// the distinct strings of its columns.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "base/files.h"
#include "data/cells.h"
#include "data/datasets/sources.h"
#include "data/sources/cell_values.h"
#include "data/sources/csv_columns.h"
#include "data/sources/read_warnings.h"
#include "data/sources/record_source.h"
#include "data/transforms/narrow.h"
#include "formats/csv.h"
#include "tensor/random.h"

namespace paddle::data {
namespace {

/// x -> (transformed - shift) * factor
struct Scale {
  double shift = 0, factor = 1;
};

struct FieldPlan {
  CsvField options;
  DType dtype;
  std::vector<size_t> columns;
  std::vector<Scale> scales;         ///< per column; empty without scaling
  std::vector<uint64_t> hash_seeds;  ///< per column
  Vocabulary vocabulary;
  TextTokenizerPtr tokenizer;  ///< of text in subwords, instead of a vocabulary
};

bool is_file_kind(ColumnKind kind) {
  return kind == ColumnKind::kImage || kind == ColumnKind::kMask || kind == ColumnKind::kAudio;
}

class RecordDataset : public LearningDataset {
 public:
  explicit RecordDataset(const CsvFileOptions& options)
      : options_(options),
        records_(open_records(options)),
        names_(records_->names()),
        first_path_(records_->paths()[0]) {
    if (options_.fields.empty())
      for (size_t c = 0; c < names_.size(); ++c) {
        CsvField field;
        field.name = names_[c];
        field.columns = {names_[c]};
        field.kind = records_->column_kind(c);
        field.scalar = field.kind != ColumnKind::kText;
        options_.fields.push_back(std::move(field));
      }
    for (const CsvField& field : options_.fields) plan(field);
  }

  void learn(const std::vector<bool>& used) override {
    gather(used);
    for (const FieldPlan& each : plans_) {
      Field field;
      field.name = each.options.name;
      field.dtype = each.dtype;
      if (each.options.kind == ColumnKind::kText) {
        field.shape = {-1};
        field.max_length = each.options.max_length;
        field.class_count = each.tokenizer ? each.tokenizer->size() : each.vocabulary.size();
        fields_.push_back(std::move(field));
        continue;
      }
      if (describe_cell_field(each.options, each.vocabulary, field)) {
        fields_.push_back(std::move(field));
        continue;
      }
      if (!each.options.scalar) field.shape = {static_cast<int64_t>(each.columns.size())};
      field.may_be_nan = each.options.missing == MissingPolicy::kNan;
      if (each.options.kind == ColumnKind::kCategorical) {
        field.class_count = category_count(each);
        field.classes = each.vocabulary.tokens();
        if (first_id(each) == 1)
          field.classes.insert(field.classes.begin(), std::string(kUnknownToken));
        if (!fits(field.class_count - 1, field.dtype))
          fail(ErrorCode::kConfig, "field '", field.name, "': ", field.class_count,
               " categories do not fit ", paddle::text(field.dtype), "; use a wider dtype");
      }
      fields_.push_back(std::move(field));
    }
  }

  int64_t size() const override { return records_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    read_fields(index, true, out);
  }
  void check(int64_t index) const override {
    thread_local Sample sample;
    read_fields(index, false, sample);
  }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    std::string out = records_->location(index).text();
    if (field >= 0) {
      const FieldPlan& each = plans_[static_cast<size_t>(field)];
      // A field of several columns has an element per column; others have all of theirs in one.
      const bool is_one = each.columns.size() == 1;
      const size_t last = each.columns.size() - 1;
      const auto column =
          is_one ? size_t{0} : std::min(static_cast<size_t>(std::max<int64_t>(element, 0)), last);
      out += str(", column '", names_[each.columns[column]], "'");
      if (is_one && element >= 0 &&
          (is_cell_kind(each.options.kind) || each.options.kind == ColumnKind::kText))
        out += str(", element ", element);
    }
    return out;
  }
  std::vector<std::string> paths() const override {
    std::vector<std::string> out;
    for (const std::string& path : records_->paths())
      out.push_back(std::filesystem::absolute(path).lexically_normal().string());
    return out;
  }
  const Vocabulary* vocabulary(int64_t field) const override {
    const Vocabulary& vocabulary = plans_[static_cast<size_t>(field)].vocabulary;
    return vocabulary.size() > 0 ? &vocabulary : nullptr;
  }
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    const FieldPlan& each = plans_[static_cast<size_t>(field)];
    if (!is_integer(each.dtype) || each.columns.size() != 1 ||
        each.options.kind == ColumnKind::kText || is_cell_kind(each.options.kind))
      return std::nullopt;
    std::vector<std::string_view> cells;
    std::string scratch;
    try {
      records_->cells(index, cells, scratch);
      return integer(each, 0, cells[each.columns[0]], index);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  std::optional<std::string> key_of(int64_t index, const std::string& column) const override {
    std::vector<size_t> columns;
    for (const FieldPlan& each : plans_)
      if (each.options.name == column) columns = each.columns;
    if (columns.empty()) {
      const auto at = std::find(names_.begin(), names_.end(), column);
      if (at == names_.end()) return std::nullopt;
      columns = {static_cast<size_t>(at - names_.begin())};
    }
    std::vector<std::string_view> cells;
    std::string scratch, out;
    records_->cells(index, cells, scratch);
    for (const size_t c : columns) out += (out.empty() ? "" : "\x1f") + std::string(cells[c]);
    return out;
  }
  std::vector<Fitted> fitted() const override {
    std::vector<Fitted> out;
    for (const FieldPlan& each : plans_) {
      Fitted& field = out.emplace_back();
      field.field = each.options.name;
      field.log = each.options.log;
      field.unknown_is_zero = each.options.unknown_is_zero;
      field.unknown_shares_zero = each.options.unknown_shares_zero;
      for (const Scale& scale : each.scales) {
        field.shift.push_back(scale.shift);
        field.factor.push_back(scale.factor);
      }
      field.tokens = each.vocabulary.tokens();
      if (each.options.kind != ColumnKind::kText) continue;
      if (each.tokenizer) {
        field.tokenizer = each.tokenizer;
        field.special_tokens = each.options.special_tokens;
        field.max_length = each.options.max_length;
        continue;
      }
      field.token_kind = name_of(each.options.tokens);
      field.lowercase = each.options.lowercase;
      field.max_length = each.options.max_length;
    }
    return out;
  }
  int64_t length_of(int64_t index) const override {
    thread_local std::vector<std::string_view> cells;
    thread_local std::string scratch;
    int64_t length = 0;
    try {
      records_->cells(index, cells, scratch);
    } catch (const Error&) {
      return 0;  // `read` reports it
    }
    for (const FieldPlan& each : plans_) {
      const std::string_view cell = cells[each.columns[0]];
      if (each.options.kind == ColumnKind::kText)
        length += tokens_in(each, cell);
      else if (each.options.kind == ColumnKind::kKeys)
        length += keys_in(each.options, cell);
      else if (each.options.kind == ColumnKind::kAudio)
        length +=
            sound_length(each.options, cell, records_->holds_files(), records_->location(index));
    }
    return length;
  }
  std::vector<std::string> warnings() const override { return warnings_.lines(); }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"columns", join(names_, ", ")}};
  }

 private:
  /// Without `decodes`, files are looked for and not read: their fields have no values.
  void read_fields(int64_t index, bool decodes, Sample& out) const {
    thread_local std::vector<std::string_view> cells;
    thread_local std::string scratch;
    records_->cells(index, cells, scratch);
    out.resize(plans_.size());
    for (size_t f = 0; f < plans_.size(); ++f) {
      const FieldPlan& each = plans_[f];
      Value& value = out[f];
      if (each.options.kind == ColumnKind::kText) {
        read_text(each, cells[each.columns[0]], index, value);
        continue;
      }
      if (is_cell_kind(each.options.kind)) {
        read_cell(each, fields_[f], cells[each.columns[0]], index, decodes, value);
        continue;
      }
      value.reset(each.dtype, fields_[f].shape);
      for (size_t c = 0; c < each.columns.size(); ++c) {
        const std::string_view cell = cells[each.columns[c]];
        if (is_float(each.dtype))
          store(value, c, number(each, c, cell, index));
        else
          store(value, c, integer(each, c, cell, index));
      }
    }
  }

  void plan(const CsvField& field) {
    FieldPlan each;
    each.options = field;
    each.columns = csv_columns_of(field, names_, first_path_);
    if (field.scalar && each.columns.size() != 1)
      fail(ErrorCode::kConfig, "field '", field.name, "': a scalar needs one column, ",
           each.columns.size(), " are named");
    check_csv_options(field);
    const bool categorical = field.kind == ColumnKind::kCategorical;
    const bool is_text = field.kind == ColumnKind::kText;
    if (is_cell_kind(field.kind)) {
      each.dtype = cell_dtype(field);
      check_cell_field(field, each.columns.size());
      if (field.kind == ColumnKind::kMultiLabel) each.vocabulary = stated_vocabulary(field);
      plans_.push_back(std::move(each));
      return;
    }
    each.dtype = field.dtype.value_or(categorical || is_text ? DType::kI64 : DType::kF32);
    if (!info(each.dtype).has_kernels || (categorical && !is_integer(each.dtype)) ||
        (is_text && each.dtype != DType::kI64 && each.dtype != DType::kI32))
      fail(ErrorCode::kConfig, "field '", field.name, "': type ", text(each.dtype),
           " does not suit its columns");
    if (!is_float(each.dtype) && (field.log || field.scaling != Scaling::kNone ||
                                  !field.shift.empty() || field.missing == MissingPolicy::kNan))
      fail(ErrorCode::kConfig, "field '", field.name, "': scaled, logarithmic or missing values ",
           "need a floating type, not ", text(each.dtype));
    if (!is_float(each.dtype) && !categorical && !is_text &&
        (!is_value_of(field.fill, each.dtype) || std::abs(field.fill) > 0x1p53))
      fail(ErrorCode::kConfig, "field '", field.name, "': fill is ", field.fill,
           ", expected a value of ", text(each.dtype));
    if (field.buckets < 0 || field.buckets > (int64_t{1} << 48))
      fail(ErrorCode::kConfig, "field '", field.name, "': buckets is ", field.buckets);
    if (field.shift.size() != field.factor.size() ||
        (!field.shift.empty() && field.shift.size() != each.columns.size()))
      fail(ErrorCode::kConfig, "field '", field.name, "': shift and factor have ",
           field.shift.size(), " and ", field.factor.size(), " values for ", each.columns.size(),
           " columns");
    for (size_t c = 0; c < field.shift.size(); ++c)
      each.scales.push_back({field.shift[c], field.factor[c]});
    for (const size_t c : each.columns) each.hash_seeds.push_back(stream_of(names_[c]));
    if (is_text && each.columns.size() != 1)
      fail(ErrorCode::kConfig, "field '", field.name, "': text is one column, ",
           each.columns.size(), " are named");
    if (is_text && field.tokenizer.given()) {
      each.tokenizer = field.tokenizer.open();
    } else if ((categorical && field.buckets == 0) || is_text) {
      if (categorical && field.vocabulary.empty() && field.vocabulary_file.empty())
        each.options.vocabulary = declared_vocabulary(each);
      each.vocabulary = stated_vocabulary(each.options);
      if (is_text && each.vocabulary.size() > 0)
        each.vocabulary = Vocabulary(with_unknown(each.vocabulary.tokens()));
    }
    plans_.push_back(std::move(each));
  }

  static Vocabulary stated_vocabulary(const CsvField& field) {
    if (!field.vocabulary.empty()) return Vocabulary(field.vocabulary);
    return field.vocabulary_file.empty() ? Vocabulary() : Vocabulary::read(field.vocabulary_file);
  }

  /// The values that all columns of the field declare; empty where one declares none.
  std::vector<std::string> declared_vocabulary(const FieldPlan& each) const {
    std::vector<std::string> out;
    for (const size_t c : each.columns) {
      const std::vector<std::string> values = records_->declared_values(c);
      if (values.empty()) return {};
      for (const std::string& value : values) {
        const bool is_dropped = value.empty() && each.options.missing == MissingPolicy::kError;
        if (!is_dropped && std::find(out.begin(), out.end(), value) == out.end())
          out.push_back(value);
      }
    }
    return out;
  }

  /// One pass over the file: statistics of the rows in use, and the distinct strings of all. Rows
  /// that are bad are left to `read`, where the policy for them applies.
  void gather(const std::vector<bool>& used) {
    struct Statistics {
      double low = HUGE_VAL, high = -HUGE_VAL, mean = 0, squares = 0;
      int64_t count = 0;
    };
    std::vector<std::vector<Statistics>> statistics(plans_.size());
    std::vector<std::set<std::string, std::less<>>> strings(plans_.size());
    std::vector<std::unordered_map<std::string, int64_t>> counts(plans_.size());
    bool needed = false;
    for (size_t f = 0; f < plans_.size(); ++f) {
      const FieldPlan& each = plans_[f];
      const bool numeric = each.options.kind == ColumnKind::kNumeric;
      if (numeric && each.options.scaling != Scaling::kNone && each.scales.empty())
        statistics[f].resize(each.columns.size());
      needed = needed || !statistics[f].empty() || collects(each);
    }
    if (!needed) return;
    std::vector<std::string_view> cells;
    std::string scratch;
    for (size_t row = 0; row < static_cast<size_t>(records_->size()); ++row) {
      try {
        records_->cells(static_cast<int64_t>(row), cells, scratch);
      } catch (const Error&) {
        continue;
      }
      for (size_t f = 0; f < plans_.size(); ++f) {
        const FieldPlan& each = plans_[f];
        if (each.options.kind == ColumnKind::kText) {
          if (collects(each) && used[row])
            count_tokens(each.options, cells[each.columns[0]], counts[f]);
        } else if (each.options.kind == ColumnKind::kMultiLabel) {
          if (collects(each))
            for (std::string& label : list_of(cells[each.columns[0]], each.options.separator))
              if (!invalid_utf8(label)) strings[f].insert(std::move(label));
        } else if (collects(each))
          for (const size_t c : each.columns)
            if (!strings[f].contains(cells[c]) && !invalid_utf8(cells[c]) &&
                !(trim(cells[c]).empty() && each.options.missing == MissingPolicy::kError))
              strings[f].emplace(cells[c]);
        for (size_t c = 0; used[row] && c < statistics[f].size(); ++c) {
          double x = 0;
          if (!cell_number(cells[each.columns[c]], options_.decimal, x) || !std::isfinite(x))
            continue;
          x = transformed(each, x);
          Statistics& s = statistics[f][c];
          s.low = std::min(s.low, x), s.high = std::max(s.high, x);
          const double delta = x - s.mean;  // Welford's update
          s.mean += delta / static_cast<double>(++s.count);
          s.squares += delta * (x - s.mean);
        }
      }
    }
    for (size_t f = 0; f < plans_.size(); ++f) {
      if (plans_[f].options.kind == ColumnKind::kText) {
        if (collects(plans_[f]))
          plans_[f].vocabulary =
              Vocabulary(with_unknown(most_frequent(plans_[f].options, counts[f])));
      } else if (collects(plans_[f]))
        plans_[f].vocabulary = Vocabulary({strings[f].begin(), strings[f].end()});
      for (const Statistics& s : statistics[f]) {
        Scale scale;
        if (s.count > 0 && plans_[f].options.scaling == Scaling::kMinMax)
          scale = {s.low, s.high > s.low ? 1 / (s.high - s.low) : 1};
        else if (s.count > 0)
          scale = {s.mean,
                   s.squares > 0 ? 1 / std::sqrt(s.squares / static_cast<double>(s.count)) : 1};
        plans_[f].scales.push_back(scale);
      }
    }
  }

  static void count_tokens(const CsvField& field, std::string_view cell,
                           std::unordered_map<std::string, int64_t>& counts) {
    if (invalid_utf8(cell)) return;
    const std::string text = field.lowercase ? lowercase(cell) : std::string(cell);
    for (const std::string_view token : split_tokens(text, field.tokens, field.max_length))
      ++counts[std::string(token)];
  }

  /// By falling count, and those of one count in order.
  static std::vector<std::string> most_frequent(
      const CsvField& field, const std::unordered_map<std::string, int64_t>& counts) {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [token, count] : counts)
      if (count >= field.min_count) order.emplace_back(-count, token);
    std::sort(order.begin(), order.end());
    std::vector<std::string> out;
    for (auto& [count, token] : order)
      if (static_cast<int64_t>(out.size()) < field.vocabulary_size) out.push_back(std::move(token));
    return out;
  }

  /// The tokens of a text's vocabulary: number 0 is every other one.
  static std::vector<std::string> with_unknown(std::vector<std::string> tokens) {
    if (tokens.empty() || tokens[0] != kUnknownToken)
      tokens.insert(tokens.begin(), std::string(kUnknownToken));
    return tokens;
  }

  /// About as many tokens as a text has.
  static int64_t tokens_in(const FieldPlan& each, std::string_view cell) {
    constexpr int64_t kBytesPerSubword = 4;
    if (each.tokenizer)
      return std::min(each.options.max_length,
                      static_cast<int64_t>(cell.size()) / kBytesPerSubword + 1);
    return static_cast<int64_t>(
        split_tokens(cell, each.options.tokens, each.options.max_length).size());
  }

  void read_text(const FieldPlan& each, std::string_view cell, int64_t index, Value& out) const {
    if (invalid_utf8(cell))
      bad_cell(each, 0, index,
               str(quoted(cell), " is not UTF-8; convert the file (iconv -t UTF-8)"));
    if (each.tokenizer) {
      const auto ids =
          each.tokenizer->encode(cell, each.options.max_length, each.options.special_tokens);
      const int64_t count = static_cast<int64_t>(ids.size());
      out.reset(each.dtype, {&count, 1});
      for (size_t i = 0; i < ids.size(); ++i) store(out, i, ids[i]);
      return;
    }
    const std::string text = each.options.lowercase ? lowercase(cell) : std::string(cell);
    const auto tokens = split_tokens(text, each.options.tokens, each.options.max_length);
    const int64_t length = static_cast<int64_t>(tokens.size());
    out.reset(each.dtype, {&length, 1});
    for (size_t i = 0; i < tokens.size(); ++i) {
      store(out, i, each.vocabulary.find(tokens[i]).value_or(0));
    }
  }

  /// True for a field whose vocabulary is taken from the file.
  static bool collects(const FieldPlan& each) {
    return !each.tokenizer && each.options.kind != ColumnKind::kNumeric &&
           !is_file_kind(each.options.kind) && each.options.kind != ColumnKind::kNumbers &&
           each.options.kind != ColumnKind::kKeys && each.options.buckets == 0 &&
           each.options.vocabulary.empty() && each.options.vocabulary_file.empty();
  }
  static double transformed(const FieldPlan& each, double x) {
    return each.options.log ? std::copysign(std::log1p(std::abs(x)), x) : x;
  }

  /// A cell that is more than a number or a text.
  void read_cell(const FieldPlan& each, const Field& field, std::string_view cell, int64_t index,
                 bool decodes, Value& out) const {
    try {
      if (is_file_kind(each.options.kind) && !decodes) {
        check_file_cell(each.options, cell, records_->holds_files(), records_->location(index));
      } else if (is_file_kind(each.options.kind)) {
        const std::string warning = read_file_cell(each.options, cell, records_->holds_files(),
                                                   records_->location(index), out);
        if (!warning.empty()) warnings_.add(records_->location(index).text(), warning);
      } else if (each.options.kind == ColumnKind::kMultiLabel) {
        read_labels(each.options, each.vocabulary, cell, out);
      } else if (each.options.kind == ColumnKind::kKeys) {
        read_keys(each.options, field.dtype, cell, out);
      } else {
        read_numbers(each.options, field.dtype, cell, options_.decimal, out);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kData || !error.location().text().empty()) throw;
      bad_cell(each, 0, index, error.message());
    }
  }

  [[noreturn]] void bad_cell(const FieldPlan& each, size_t c, int64_t index,
                             const std::string& why) const {
    throw Error(ErrorCode::kData, str("column '", names_[each.columns[c]], "': ", why),
                records_->location(index));
  }

  double number(const FieldPlan& each, size_t c, std::string_view cell, int64_t index) const {
    double x = 0;
    const bool fills = each.options.missing == MissingPolicy::kFill;
    if (is_missing(cell)) {
      switch (each.options.missing) {
        case MissingPolicy::kDefault:
        case MissingPolicy::kError:
        case MissingPolicy::kCategory:
          bad_cell(
              each, c, index,
              "the value is missing; to use a number instead set `missing: fill` and `fill: 0`");
        case MissingPolicy::kFill:
          x = each.options.fill;
          break;
        case MissingPolicy::kNan:
          return std::numeric_limits<double>::quiet_NaN();
      }
    } else if (!cell_number(cell, options_.decimal, x)) {
      bad_cell(each, c, index, str(quoted(cell), " is not a number", number_hint(cell, index)));
    } else if (fills && std::isnan(x)) {
      x = each.options.fill;
    }
    x = transformed(each, x);
    return each.scales.empty() ? x : (x - each.scales[c].shift) * each.scales[c].factor;
  }

  /// For the first line of a file that was opened without a header, and for decimal commas.
  const char* number_hint(std::string_view cell, int64_t index) const {
    if (options_.format != "csv") return "";
    if (index == 0 && !options_.header) return " (if this line is a header, set `header: true`)";
    double ignored = 0;
    const char other = options_.decimal == '.' ? ',' : '.';
    if (!cell_number(cell, other, ignored)) return "";
    return other == ',' ? " (for decimal commas set `decimal: \",\"`)"
                        : " (its decimal mark is not that of `decimal`)";
  }

  /// The first characters of a cell in quotes; bytes that are not UTF-8 as "\xE9".
  static std::string quoted(std::string_view cell) {
    return str("'", printable(cell.substr(0, 40)), "'");
  }

  /// In its 64 bits.
  int64_t integer(const FieldPlan& each, size_t c, std::string_view cell, int64_t index) const {
    // Most integers are digits only.
    if (int64_t plain = 0; each.options.kind != ColumnKind::kCategorical && is_plain(cell, plain) &&
                           (each.dtype == DType::kI64 || each.dtype == DType::kU64))
      return plain;
    // Numbers from 2^63 on, which are keys.
    if (uint64_t large = 0; each.dtype == DType::kU64 &&
                            each.options.kind != ColumnKind::kCategorical &&
                            parse_large(trim(cell), large))
      return static_cast<int64_t>(large);
    const int64_t x = each.options.kind == ColumnKind::kCategorical
                          ? category(each, c, cell, index)
                          : whole_number(each, c, cell, index);
    if (!fits(x, each.dtype))
      bad_cell(each, c, index, str(x, " does not fit ", text(each.dtype), "; use a wider dtype"));
    return x;
  }

  /// Whether a cell is a number below 2^63 in digits and nothing else.
  static bool is_plain(std::string_view cell, int64_t& out) {
    if (cell.empty() || cell.front() < '0' || cell.front() > '9') return false;
    const char* const end = cell.data() + cell.size();
    const auto [rest, error] = std::from_chars(cell.data(), end, out);
    return error == std::errc{} && rest == end;
  }

  static bool parse_large(std::string_view text, uint64_t& out) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && out >> 63 != 0;
  }

  int64_t whole_number(const FieldPlan& each, size_t c, std::string_view cell,
                       int64_t index) const {
    int64_t x = 0;
    double ignored = 0;
    if (is_missing(cell) || (each.options.missing == MissingPolicy::kFill &&
                             cell_number(cell, options_.decimal, ignored) && std::isnan(ignored)))
      return static_cast<int64_t>(number(each, c, cell, index));
    std::string scratch;
    if (!formats::parse_integer(with_point(cell, options_.decimal, scratch), x))
      bad_cell(each, c, index, not_an_integer(cell) + number_hint(cell, index));
    return x;
  }

  int64_t category(const FieldPlan& each, size_t c, std::string_view cell, int64_t index) const {
    if (each.options.missing == MissingPolicy::kError && trim(cell).empty() &&
        !each.vocabulary.find(cell))
      bad_cell(each, c, index,
               "the value is missing; `missing: category` makes an empty cell a category");
    if (each.options.buckets > 0) {
      const uint64_t hash = mix64(stream_of(cell) ^ each.hash_seeds[c]);
      const auto bucket =
          static_cast<int64_t>(Random::scale(hash, static_cast<uint64_t>(each.options.buckets)));
      return each.options.per_column ? static_cast<int64_t>(c) * each.options.buckets + bucket
                                     : bucket;
    }
    if (const auto id = each.vocabulary.find(cell)) return *id + first_id(each);
    if (invalid_utf8(cell))
      bad_cell(
          each, c, index,
          str(quoted(cell), " is not UTF-8; convert the file (iconv -t UTF-8) or use `buckets`"));
    if (each.options.unknown_is_zero) return 0;
    bad_cell(each, c, index,
             str(quoted(cell), " is not in the vocabulary of ", each.vocabulary.size()));
  }

  /// The id of the vocabulary's first token.
  static int64_t first_id(const FieldPlan& each) {
    return each.options.unknown_is_zero && !each.options.unknown_shares_zero ? 1 : 0;
  }
  static int64_t category_count(const FieldPlan& each) {
    if (each.options.buckets == 0) return each.vocabulary.size() + first_id(each);
    const auto columns = static_cast<int64_t>(each.columns.size());
    return each.options.per_column ? checked_multiply(each.options.buckets, columns)
                                   : each.options.buckets;
  }

  template <class Number>
  static void store(Value& value, size_t at, Number number) {
    visit_dtype(value.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        value.data<T>()[at] = T(static_cast<float>(number));
      else
        value.data<T>()[at] = static_cast<T>(number);
    });
  }

  CsvFileOptions options_;
  RecordSourcePtr records_;
  std::vector<std::string> names_;
  std::string first_path_;
  std::vector<FieldPlan> plans_;
  std::vector<Field> fields_;
  mutable ReadWarnings warnings_{"records"};
};

}  // namespace

std::shared_ptr<LearningDataset> make_csv(const CsvFileOptions& options) {
  return std::make_shared<RecordDataset>(options);
}

}  // namespace paddle::data
