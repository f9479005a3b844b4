#include "data/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "tensor/random.h"

namespace paddle::data {
namespace {

/// "float32[13] from 0 to 3.2, mean 0.4", or what the numbers stand for.
std::string summary(const Field& field, const Value& value, const Vocabulary* vocabulary) {
  std::string out = str(field.name, ": ", text(value.dtype()), str(value.shape()));
  if (value.size() == 0) return out;
  const auto class_name = [&](double number) -> std::string {
    const auto at = static_cast<size_t>(number);
    if (number < 0 || at >= field.classes.size()) return "";
    return str(" (", field.classes[at], ")");
  };
  if (field.max_length > 0 && vocabulary) {  // words
    out += " =";
    for (int64_t i = 0; i < std::min<int64_t>(value.size(), 20); ++i)
      out += " " + vocabulary->token(static_cast<int64_t>(value.number(i)));
    return out + (value.size() > 20 ? " …" : "");
  }
  if (value.size() <= 8) {
    out += " =";
    for (int64_t i = 0; i < value.size(); ++i)
      out += str(" ", format_float(static_cast<float>(value.number(i))),
                 is_integer(value.dtype()) ? class_name(value.number(i)) : "");
    return out;
  }
  if (vocabulary && value.dtype() == DType::kI64) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < std::min<int64_t>(value.size(), 40); ++i)
      ids.push_back(value.data<int64_t>()[i]);
    std::string excerpt;
    for (const char c : vocabulary->decode(ids)) excerpt += c == '\n' ? "\\n" : std::string(1, c);
    return str(out, " \"", excerpt, "…\"");
  }
  double low = HUGE_VAL, high = -HUGE_VAL, sum = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < value.size(); ++i) {
    const double x = value.number(i);
    if (std::isnan(x)) {
      ++nans;
      continue;
    }
    low = std::min(low, x), high = std::max(high, x), sum += x;
  }
  const auto count = static_cast<double>(value.size() - nans);
  out += str(" from ", format_float(static_cast<float>(low)), " to ",
             format_float(static_cast<float>(high)), ", mean ",
             format_float(static_cast<float>(std::round(sum / count * 1000) / 1000)));
  return nans > 0 ? str(out, ", ", nans, " NaN") : out;
}

/// "cat 120, dog 80" for a field of classes; "" for other fields.
std::string class_counts(const Dataset& dataset, size_t field) {
  constexpr size_t kMaxClasses = 1000, kShown = 50;
  const Field& described = dataset.fields()[field];
  std::map<int64_t, int64_t> counts;
  if (described.class_count > 0 && described.class_count <= static_cast<int64_t>(kMaxClasses))
    for (int64_t id = 0; id < described.class_count; ++id) counts[id] = 0;
  bool any = false;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto id = dataset.class_of(i, static_cast<int64_t>(field));
    if (!id) continue;
    any = true;
    ++counts[*id];
    if (counts.size() > kMaxClasses) return "";
  }
  if (!any) return "";
  std::vector<std::string> shown;
  for (const auto& [id, count] : counts) {
    if (shown.size() == kShown) {
      shown.push_back("…");
      break;
    }
    const bool named = id >= 0 && id < static_cast<int64_t>(described.classes.size());
    shown.push_back(str(named ? described.classes[static_cast<size_t>(id)] : str(id), " ", count));
  }
  return join(shown, ", ");
}

/// Hashes of the contents of all samples, with their numbers.
std::vector<std::pair<uint64_t, int64_t>> content_hashes(const Dataset& dataset,
                                                         const std::vector<std::string>& inputs) {
  std::vector<size_t> contents;
  const std::vector<Field>& fields = dataset.fields();
  for (size_t f = 0; f < fields.size(); ++f)
    if (std::find(inputs.begin(), inputs.end(), fields[f].name) != inputs.end())
      contents.push_back(f);
  const bool named = !contents.empty();
  for (size_t f = 0; !named && f < fields.size(); ++f)
    if (!fields[f].shape.empty()) contents.push_back(f);
  if (contents.empty())
    for (size_t f = 0; f < fields.size(); ++f) contents.push_back(f);
  std::vector<std::pair<uint64_t, int64_t>> out;
  Sample sample;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    try {
      dataset.read(i, {}, sample);
    } catch (const Error&) {
      continue;
    }
    uint64_t hash = 0;
    for (const size_t f : contents) {
      // Texts that share a bucket, or that the vocabulary lacks, are not the same.
      const bool is_category = fields[f].class_count > 0 && fields[f].max_length == 0;
      const auto text = is_category ? dataset.key_of(i, fields[f].name) : std::nullopt;
      if (text) {
        hash = mix64(hash ^ fnv1a(*text));
        continue;
      }
      for (const int64_t d : sample[f].shape()) hash = mix64(hash ^ static_cast<uint64_t>(d));
      hash =
          mix64(hash ^ fnv1a({reinterpret_cast<const char*>(sample[f].raw()), sample[f].bytes()}));
    }
    out.emplace_back(hash, i);
  }
  return out;
}

}  // namespace

Duplicates find_duplicates(const Dataset& part, const Dataset& other,
                           const std::vector<std::string>& inputs) {
  constexpr size_t kShown = 3;
  std::unordered_map<uint64_t, int64_t> known;
  for (const auto& [hash, index] : content_hashes(other, inputs)) known.emplace(hash, index);
  Duplicates out;
  out.size = part.size();
  const bool same_source = !part.source().empty() && part.source() == other.source();
  for (const auto& [hash, index] : content_hashes(part, inputs)) {
    const auto found = known.find(hash);
    if (found == known.end()) continue;
    // The same sample of the same file is reported as such when the data is opened.
    if (same_source && part.source_index(index) == other.source_index(found->second)) continue;
    if (++out.count <= static_cast<int64_t>(kShown))
      out.examples.emplace_back(part.location(index), other.location(found->second));
  }
  return out;
}

std::string Duplicates::text(const std::string& part, const std::string& other) const {
  std::vector<std::string> pairs;
  for (const auto& [a, b] : examples) pairs.push_back(str(a, " and ", b));
  return str("data.", part, ": ", count, " of ", size, " samples have the same contents as one of ",
             "data.", other, ": ", join(pairs, ", "),
             count > static_cast<int64_t>(examples.size()) ? ", …" : "");
}

DataReport check_data(const Dataset& dataset) {
  DataReport report;
  report.paths = dataset.paths();
  report.samples = dataset.size();
  report.fields = dataset.fields();
  report.facts = dataset.facts();
  for (const std::string& line : dataset.skipped_files())
    report.facts.emplace_back("passed over", line);
  for (size_t f = 0; f < report.fields.size(); ++f)
    if (const std::string counts = class_counts(dataset, f); !counts.empty())
      report.facts.emplace_back("samples per " + report.fields[f].name, counts);
  const int64_t n = dataset.size();
  for (const int64_t index : std::set<int64_t>{0, n / 2, n - 1}) {
    if (index < 0 || index >= n) continue;
    std::vector<std::string> lines;
    Sample sample;
    try {
      dataset.read(index, {}, sample);
      for (size_t f = 0; f < sample.size(); ++f)
        lines.push_back(
            summary(report.fields[f], sample[f], dataset.vocabulary(static_cast<int64_t>(f))));
    } catch (const Error& error) {
      lines = {str("bad: ", error.what())};
      report.bad.emplace_back(error.what());
    }
    report.examples.emplace_back(dataset.location(index), std::move(lines));
  }
  return report;
}

std::string DataReport::text() const {
  std::string out;
  const auto add_line = [&](const std::string& line) { out += paddle::printable(line) + "\n"; };
  for (const std::string& path : paths) add_line("path: " + path);
  add_line(str("samples: ", samples));
  for (const auto& [name, value] : facts) add_line(str(name, ": ", value));
  for (const Field& field : fields) {
    std::string line = str("field ", field);
    if (!field.classes.empty()) {
      constexpr size_t kShown = 12;
      std::vector<std::string> shown(field.classes.begin(),
                                     field.classes.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                 kShown, field.classes.size())));
      line += str(", ", field.classes.size(), " classes: ", join(shown, ", "),
                  field.classes.size() > kShown ? ", …" : "");
    } else if (field.class_count > 0) {
      line += str(", values 0..", field.class_count - 1);
    }
    add_line(line);
  }
  for (const auto& [place, lines] : examples) {
    add_line(place);
    for (const std::string& line : lines) add_line("  " + line);
  }
  return out;
}

}  // namespace paddle::data
