#include "data/sources/csv_columns.h"

#include <algorithm>
#include <set>

#include "formats/csv.h"

namespace paddle::data {
namespace {

/// Splits "I12" into "I" and 12; false if it does not end in a number.
bool split_number(const std::string& name, std::string& stem, int64_t& number) {
  size_t at = name.size();
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  stem = name.substr(0, at);
  return at < name.size() && formats::parse_integer(name.substr(at), number);
}

size_t column(const std::string& name, const CsvField& field, const std::vector<std::string>& names,
              const std::string& path) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  int64_t number = -1;
  if (formats::parse_integer(name, number) && number >= 0 &&
      number < static_cast<int64_t>(names.size()))
    return static_cast<size_t>(number);
  fail(ErrorCode::kData, path, ": field '", field.name, "': no column '", name, "'",
       did_you_mean(name, names), "; there are: ", join(names, ", "));
}

}  // namespace

void check_csv_header(const std::vector<std::string>& names, const std::vector<CsvField>& fields,
                      const SourceLocation& place) {
  double number = 0;
  bool counted = true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!formats::parse_number(names[i], number)) return;
    counted = counted && names[i] == std::to_string(i);
  }
  const auto is_name = [&](const std::string& text) {
    return std::find(names.begin(), names.end(), text) != names.end();
  };
  const bool named =
      !fields.empty() && std::all_of(fields.begin(), fields.end(), [&](const CsvField& field) {
        return field.columns.empty()
                   ? is_name(field.name)
                   : std::all_of(field.columns.begin(), field.columns.end(), is_name);
      });
  if (counted || named) return;
  throw Error(ErrorCode::kData,
              "expected a header, found a row of numbers; for a file without a header set "
              "`header: false`",
              place);
}

void tell_apart(std::vector<std::string>& names) {
  std::set<std::string> seen(names.begin(), names.end()), used;
  for (std::string& name : names) {
    if (used.insert(name).second) continue;
    for (int64_t number = 1;; ++number) {
      const std::string other = str(name, ".", number);
      if (seen.contains(other)) continue;
      seen.insert(other);
      used.insert(other);
      name = other;
      break;
    }
  }
}

std::vector<size_t> csv_columns_of(const CsvField& field, const std::vector<std::string>& names,
                                   const std::string& path) {
  std::vector<size_t> out;
  for (const std::string& text : field.columns.empty() ? std::vector{field.name} : field.columns) {
    const size_t dots = text.find("..");
    const bool named = std::find(names.begin(), names.end(), text) != names.end();
    if (!named && dots != text.npos) {
      std::string stem, last_stem;
      int64_t first = 0, last = 0;
      if (!split_number(text.substr(0, dots), stem, first) ||
          !split_number(text.substr(dots + 2), last_stem, last) ||
          (stem != last_stem && !last_stem.empty()) || last < first ||
          last - first >= static_cast<int64_t>(names.size()))
        fail(ErrorCode::kConfig, "field '", field.name, "': '", text,
             "' is not a range of columns; write it as I1..I13");
      for (int64_t i = first; i <= last; ++i)
        out.push_back(column(str(stem, i), field, names, path));
    } else if (!named && text.find_first_of("*?") != text.npos) {
      const size_t before = out.size();
      for (size_t i = 0; i < names.size(); ++i)
        if (matches_pattern(text, names[i])) out.push_back(i);
      if (out.size() == before)
        fail(ErrorCode::kData, path, ": field '", field.name, "': no column matches '", text, "'");
    } else {
      out.push_back(column(text, field, names, path));
    }
  }
  return out;
}

void check_csv_options(const CsvField& field) {
  const auto reject = [&](bool set, const char* option, const char* why) {
    if (set)
      fail(ErrorCode::kConfig, "field '", field.name, "': `", option, "` ", why,
           "; remove it or change the field");
  };
  const bool vocabulary = !field.vocabulary.empty() || !field.vocabulary_file.empty();
  if (field.kind == ColumnKind::kNumeric) {
    const char* why = "has no effect on a numeric field (`kind: categorical` is missing?)";
    reject(field.buckets > 0, "buckets", why);
    reject(field.per_column, "per_column", why);
    reject(vocabulary, "vocabulary", why);
    reject(field.unknown_is_zero, "unknown_is_zero", why);
    reject(field.missing == MissingPolicy::kCategory, "missing: category", why);
    reject(field.fill != 0 && field.missing != MissingPolicy::kFill, "fill",
           "has no effect without `missing: fill`");
    return;
  }
  const bool is_text = field.kind == ColumnKind::kText;
  const char* why =
      is_text ? "has no effect on a text field" : "has no effect on a categorical field";
  if (is_text) {
    reject(field.tokenizer.given() && vocabulary, "vocabulary", "has no effect with `tokenizer`");
    reject(field.buckets > 0, "buckets", why);
    reject(field.per_column, "per_column", why);
    reject(field.unknown_is_zero, "unknown_is_zero", why);
    reject(field.scalar, "scalar", why);
  }
  const bool is_error =
      field.missing == MissingPolicy::kDefault || field.missing == MissingPolicy::kError;
  reject(is_text ? !is_error : field.missing == MissingPolicy::kFill,
         is_text ? "missing" : "missing: fill", why);
  reject(field.missing == MissingPolicy::kNan, "missing: nan", why);
  reject(field.fill != 0, "fill", why);
  reject(field.log, "log", why);
  reject(field.scaling != Scaling::kNone, "scaling", why);
  reject(!field.shift.empty(), "shift", why);
  if (is_text) {
    reject(!field.vocabulary.empty() && !field.vocabulary_file.empty(), "vocabulary",
           "and `vocabulary_file` are both given");
  } else if (field.buckets > 0) {
    reject(vocabulary, "vocabulary", "has no effect with `buckets`");
    reject(field.unknown_is_zero, "unknown_is_zero", "has no effect with `buckets`");
  } else {
    reject(field.per_column, "per_column", "has no effect without `buckets`");
    reject(!field.vocabulary.empty() && !field.vocabulary_file.empty(), "vocabulary",
           "and `vocabulary_file` are both given");
  }
}

}  // namespace paddle::data
