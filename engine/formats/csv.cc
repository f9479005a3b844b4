#include "formats/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace paddle::formats {
namespace {

constexpr size_t kMaxFields = size_t{1} << 20;

}  // namespace

CsvParser::CsvParser(std::string_view text, std::string name, CsvOptions options)
    : text_(text), name_(std::move(name)), options_(options) {}

size_t CsvParser::record_end(size_t at, int64_t line) const {
  size_t end = std::min(text_.find('\n', at), text_.size());
  if (!options_.quote || text_.substr(at, end - at).find(options_.quote) == text_.npos) return end;
  // A quote opens only at the start of a field; line breaks inside quotes do not end a record.
  while (true) {
    if (at < text_.size() && text_[at] == options_.quote) {
      do {
        at = text_.find(options_.quote, at + 1);
        if (at == text_.npos)
          throw Error(ErrorCode::kData, "a quote is not closed", {name_, static_cast<int>(line)});
        ++at;
      } while (at < text_.size() && text_[at] == options_.quote);
    }
    while (at < text_.size() && text_[at] != options_.delimiter && text_[at] != '\n') ++at;
    if (at >= text_.size() || text_[at] == '\n') return at;
    ++at;
  }
}

std::vector<CsvRecord> CsvParser::index() const {
  std::vector<CsvRecord> records;
  size_t at = text_.starts_with("\xef\xbb\xbf") ? 3 : 0;
  int64_t line = 1;
  while (at < text_.size()) {
    const size_t end = record_end(at, line);
    const std::string_view content = text_.substr(at, end - at);
    if (!content.empty() && content != "\r") records.push_back({at, line});
    line += 1 + std::count(content.begin(), content.end(), '\n');
    at = end + 1;
  }
  return records;
}

void CsvParser::fields(const CsvRecord& record, std::vector<std::string_view>& out,
                       std::string& scratch) const {
  out.clear();
  scratch.clear();
  struct Copied {
    size_t field, offset, size;
  };
  std::vector<Copied> copied;
  size_t at = record.offset;
  while (true) {
    if (out.size() == kMaxFields)
      throw Error(ErrorCode::kData, str("a row of more than ", kMaxFields, " fields"),
                  {name_, static_cast<int>(record.line)});
    if (options_.quote && at < text_.size() && text_[at] == options_.quote) {
      const size_t offset = scratch.size();
      ++at;
      while (true) {
        const size_t close = text_.find(options_.quote, at);
        if (close == text_.npos)
          throw Error(ErrorCode::kData, "a quote is not closed",
                      {name_, static_cast<int>(record.line)});
        scratch.append(text_.substr(at, close - at));
        at = close + 1;
        if (at >= text_.size() || text_[at] != options_.quote) break;
        scratch += options_.quote;
        ++at;
      }
      copied.push_back({out.size(), offset, scratch.size() - offset});
      out.emplace_back();
      if (at < text_.size() && text_[at] == '\r' &&
          (at + 1 == text_.size() || text_[at + 1] == '\n'))
        ++at;
      if (at < text_.size() && text_[at] != options_.delimiter && text_[at] != '\n')
        throw Error(ErrorCode::kData, str("field ", out.size(), ": text after a closing quote"),
                    {name_, static_cast<int>(record.line)});
    } else {
      size_t end = at;
      while (end < text_.size() && text_[end] != options_.delimiter && text_[end] != '\n') ++end;
      std::string_view field = text_.substr(at, end - at);
      at = end;
      if ((at >= text_.size() || text_[at] == '\n') && field.ends_with('\r'))
        field.remove_suffix(1);
      out.push_back(field);
    }
    if (at >= text_.size() || text_[at] == '\n') break;
    ++at;
  }
  for (const Copied& each : copied)
    out[each.field] = std::string_view(scratch).substr(each.offset, each.size);
}

bool parse_number(std::string_view text, double& out) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc::result_out_of_range)  // as infinity or zero
    out = std::strtod(std::string(text).c_str(), nullptr);
  else if (error != std::errc{})
    return false;
  return end == text.data() + text.size();
}

bool parse_integer(std::string_view text, int64_t& out) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc{} && end == text.data() + text.size()) return true;
  // Spreadsheets write integers as "3.0".
  double number = 0;
  if (!parse_number(text, number) || !(std::abs(number) <= 0x1p53) || number != std::trunc(number))
    return false;
  out = static_cast<int64_t>(number);
  return true;
}

std::string csv_quote(std::string_view field, const CsvOptions& options) {
  const bool plain = field.find(options.delimiter) == field.npos &&
                     field.find(options.quote) == field.npos && field.find('\n') == field.npos &&
                     field.find('\r') == field.npos;
  if (plain) return std::string(field);
  std::string out(1, options.quote);
  for (const char c : field) {
    out += c;
    if (c == options.quote) out += c;
  }
  return out + options.quote;
}

}  // namespace paddle::formats
