#include "serve/predict_request.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/base64.h"
#include "serve/api_error.h"
#include "serve/http_reader.h"

namespace paddle::serve {

namespace {

/// Values inside each other in a row: its reader recurses.
constexpr size_t kMaxRowNesting = 32;

const std::vector<std::string> kBodyKeys = {"model",  "inputs", "rows",
                                            "images", "sounds", "decode"};

/// A value of JSON without further values in it.
using JsonScalar = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string>;

std::string shown(const JsonScalar& value) {
  struct {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(uint64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return format_double(v); }
    std::string operator()(const std::string& v) const {
      constexpr size_t kShown = 60;
      return "'" + printable(v.substr(0, kShown)) + (v.size() > kShown ? "…'" : "'");
    }
  } const visitor;
  return std::visit(visitor, value);
}

void set_kind(PredictRequest& request, PredictRequest::Kind kind, const std::string& key) {
  if (request.kind != PredictRequest::Kind::kNone)
    reject(key, "a request has one of 'inputs', 'rows', 'images', 'sounds' and an NPZ file; '", key,
           "' is one more");
  request.kind = kind;
}

bool read_truth(const std::string& key, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  reject(key, "'", key, "' is '", printable(text.substr(0, 60)), "', expected true or false");
}

/// Reads the JSON object of a request from nlohmann's events, without building a tree.
class JsonBody : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBody(PredictRequest& out) : out_(out) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > uint64_t{INT64_MAX}) return add(uint64_t{value});
    return add(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    if (where_ == Where::kRow) return add_to_row(digits);
    return add(double{value});
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override {
    switch (where_) {
      case Where::kStart:
        where_ = Where::kRoot;
        return true;
      case Where::kRoot:
        if (key_ != "inputs") reject(key_, "'", key_, "' is an object, expected ", expected());
        set_kind(out_, PredictRequest::Kind::kInputs, key_);
        where_ = Where::kInputs;
        return true;
      case Where::kInputs:
        begin_input();
        where_ = Where::kTyped;
        has_data_ = false;
        return true;
      case Where::kRows:
        where_ = Where::kRow;
        ++out_.row_count;
        return open_in_row('{');
      case Where::kRow:
        separate();
        return open_in_row('{');
      case Where::kTyped:
      case Where::kList:
        reject("inputs", "input '", input_, "' has an object in its lists");
      case Where::kFiles:
        reject(key_, "'", key_, "' has an object, expected strings in base64");
    }
    return false;
  }
  bool end_object() override {
    if (where_ == Where::kRow) return close_in_row('}');
    if (where_ == Where::kTyped) {
      if (!has_data_) reject("inputs", "input '", input_, "' is an object without 'data'");
      where_ = Where::kInputs;
    } else if (where_ == Where::kInputs) {
      where_ = Where::kRoot;
    }
    return true;
  }
  bool start_array(size_t) override {
    switch (where_) {
      case Where::kStart:
        reject("", "the request is a list, expected a JSON object");
      case Where::kRoot:
        start_root_array();
        return true;
      case Where::kInputs:
        begin_input();
        begin_list();
        return true;
      case Where::kTyped:
        if (key_ != "data") reject_typed();
        begin_list();
        return true;
      case Where::kList:
        builder_->open();
        return true;
      case Where::kRows:
        reject("rows", "'rows' has a list, expected objects with a value for each column");
      case Where::kRow:
        separate();
        return open_in_row('[');
      case Where::kFiles:
        reject(key_, "'", key_, "' has a list in its list");
    }
    return false;
  }
  bool end_array() override {
    if (where_ == Where::kList) {
      builder_->close();
      if (builder_->is_closed()) end_list();
      return true;
    }
    if (where_ == Where::kRow) return close_in_row(']');
    where_ = Where::kRoot;  // of rows and files
    return true;
  }
  bool key(string_t& value) override {
    if (where_ == Where::kRow) {
      separate();
      out_.rows += quoted(value) + ':';
      after_key_ = true;
      return true;
    }
    if (where_ == Where::kRoot &&
        std::find(kBodyKeys.begin(), kBodyKeys.end(), value) == kBodyKeys.end())
      reject(value, "unknown key '", printable(value), "'", did_you_mean(value, kBodyKeys),
             "; a prediction has ", join(kBodyKeys, ", "));
    if (where_ == Where::kInputs)
      input_ = std::move(value);
    else
      key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    std::string message = e.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
    if (const size_t end = message.find("] "); end != message.npos) message.erase(0, end + 2);
    reject("", "the request is not JSON: ", printable(message));
  }

 private:
  enum class Where : uint8_t {
    kStart,
    kRoot,    ///< in the object of the request
    kInputs,  ///< in `inputs`
    kTyped,   ///< in the object of an input with its type
    kList,    ///< in the lists of an input
    kRows,    ///< in the list of rows
    kRow,     ///< in a row
    kFiles,   ///< in a list of files
  };

  std::string expected() const {
    if (key_ == "model") return "a string";
    if (key_ == "inputs") return "an object of nested lists by input";
    if (key_ == "rows") return "a list of objects";
    if (key_ == "decode") return "true or false";
    return "a list of strings in base64";
  }
  void start_root_array() {
    if (key_ == "rows") {
      set_kind(out_, PredictRequest::Kind::kRows, key_);
      where_ = Where::kRows;
    } else if (key_ == "images" || key_ == "sounds") {
      begin_files();
      where_ = Where::kFiles;
    } else {
      reject(key_, "'", key_, "' is a list, expected ", expected());
    }
  }
  void begin_files() {
    set_kind(out_, key_ == "images" ? PredictRequest::Kind::kImages : PredictRequest::Kind::kSounds,
             key_);
  }
  void begin_input() {
    for (const auto& [name, list] : out_.inputs)
      if (name == input_) reject("inputs", "input '", printable(input_), "' occurs twice");
    out_.inputs.emplace_back(input_, NestedList());
  }
  void begin_list() {
    begin_builder();
    builder_->open();
    after_list_ = where_;
    where_ = Where::kList;
  }
  void begin_builder() {
    if (has_data_ && where_ == Where::kTyped)
      reject("inputs", "input '", input_, "' has 'data' twice");
    builder_.emplace(out_.inputs.back().second, input_);
    has_data_ = true;
  }
  void end_list() { where_ = after_list_; }
  [[noreturn]] void reject_typed() const {
    reject("inputs", "input '", input_, "' has the key '", printable(key_),
           "', expected 'data' (nested lists) and 'dtype' (its type)");
  }

  bool add(JsonScalar value) {
    switch (where_) {
      case Where::kStart:
        reject("", "the request is ", shown(value), ", expected a JSON object");
      case Where::kRoot:
        add_to_root(value);
        return true;
      case Where::kInputs:
        begin_input();
        begin_builder();
        add_element(value);
        return true;
      case Where::kTyped:
        add_to_typed(value);
        return true;
      case Where::kList:
        add_element(value);
        return true;
      case Where::kRows:
        reject("rows", "'rows' has ", shown(value), ", expected objects");
      case Where::kRow:
        return add_to_row(std::holds_alternative<std::string>(value)
                              ? quoted(std::get<std::string>(value))
                              : shown(value));
      case Where::kFiles:
        add_file(value);
        return true;
    }
    return false;
  }
  void add_to_root(JsonScalar& value) {
    if (std::holds_alternative<std::nullptr_t>(value)) return;
    if (key_ == "model" && std::holds_alternative<std::string>(value)) {
      out_.model = std::move(std::get<std::string>(value));
    } else if (key_ == "decode" && std::holds_alternative<bool>(value)) {
      out_.decode = std::get<bool>(value);
    } else if ((key_ == "images" || key_ == "sounds") &&
               std::holds_alternative<std::string>(value)) {
      begin_files();
      add_file(value);
    } else {
      reject(key_, "'", key_, "' is ", shown(value), ", expected ", expected());
    }
  }
  void add_to_typed(JsonScalar& value) {
    if (key_ == "data") {
      begin_builder();
      return add_element(value);
    }
    if (key_ != "dtype") reject_typed();
    const auto* name = std::get_if<std::string>(&value);
    const auto dtype = name ? parse_dtype(*name) : std::nullopt;
    if (!dtype)
      reject("inputs", "input '", input_, "': 'dtype' is ", shown(value),
             ", expected the name of a type, such as float32");
    out_.inputs.back().second.dtype = dtype;
  }
  void add_element(JsonScalar& value) {
    ListBuilder& builder = *builder_;
    if (const auto* truth = std::get_if<bool>(&value))
      builder.add_boolean(*truth);
    else if (const auto* integer = std::get_if<int64_t>(&value))
      builder.add_integer(*integer);
    else if (const auto* large = std::get_if<uint64_t>(&value))
      builder.add_large(*large);
    else if (const auto* number = std::get_if<double>(&value))
      builder.add_number(*number);
    else if (auto* text = std::get_if<std::string>(&value))
      builder.add_string(std::move(*text));
    else
      reject("inputs", "input '", input_, "' has a null, expected numbers");
  }
  void add_file(const JsonScalar& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) reject(key_, "'", key_, "' has ", shown(value), ", expected strings in base64");
    std::string_view coded = *text;
    // The form of a page: data:image/png;base64,…
    if (coded.starts_with("data:"))
      coded.remove_prefix(std::min(coded.size(), coded.substr(0, 200).find(',') + 1));
    auto bytes = from_base64(coded);
    if (!bytes || bytes->empty())
      reject(key_, "'", key_, "[", out_.files.size(), "]' is not base64");
    out_.files.push_back(std::move(*bytes));
  }

  // A row is written again, as a line of JSON.
  static std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void separate() {
    if (!after_key_ && needs_comma_) out_.rows += ',';
    after_key_ = false;
  }
  bool add_to_row(const std::string& text) {
    separate();
    out_.rows += text;
    needs_comma_ = true;
    return true;
  }
  bool open_in_row(char bracket) {
    if (++row_depth_ > kMaxRowNesting)
      reject("rows", "'rows[", out_.row_count - 1, "]' has more than ", kMaxRowNesting,
             " values inside each other");
    out_.rows += bracket;
    needs_comma_ = after_key_ = false;
    return true;
  }
  bool close_in_row(char bracket) {
    out_.rows += bracket;
    needs_comma_ = true;
    if (--row_depth_ > 0) return true;
    out_.rows += '\n';
    needs_comma_ = false;
    where_ = Where::kRows;
    return true;
  }

  PredictRequest& out_;
  Where where_ = Where::kStart, after_list_ = Where::kInputs;
  std::string key_, input_;
  std::optional<ListBuilder> builder_;
  bool has_data_ = false;  ///< of the input with its type
  bool needs_comma_ = false, after_key_ = false;
  size_t row_depth_ = 0;
};

/// The value of `name=value` or `name="value"` among the parameters of a header.
std::string parameter_of(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != header.npos) {
    std::string_view rest = header.substr(at + 1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    at = header.find(';', at + 1);
    const size_t equals = rest.find('=');
    if (equals == rest.npos || lower_ascii(rest.substr(0, equals)) != name) continue;
    rest.remove_prefix(equals + 1);
    if (rest.starts_with('"')) {
      rest.remove_prefix(1);
      return std::string(rest.substr(0, rest.find('"')));
    }
    rest = rest.substr(0, rest.find(';'));
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    return std::string(rest);
  }
  return "";
}

void add_form_field(PredictRequest& out, const std::string& name, std::string_view content) {
  const auto add_file = [&](PredictRequest::Kind kind) {
    if (out.kind != kind) set_kind(out, kind, name);
    if (content.empty()) reject(name, "'", name, "' is an empty file");
    out.files.emplace_back(content);
  };
  if (name == "model")
    out.model = content;
  else if (name == "decode")
    out.decode = read_truth(name, content);
  else if (name == "image" || name == "images")
    add_file(PredictRequest::Kind::kImages);
  else if (name == "sound" || name == "sounds")
    add_file(PredictRequest::Kind::kSounds);
  else if (name == "npz" && out.kind == PredictRequest::Kind::kNone)
    add_file(PredictRequest::Kind::kNpz);
  else
    reject(name, "the form has a field '", printable(name.substr(0, 60)),
           "', expected image, sound or npz (one), model and decode");
}

/// multipart/form-data (RFC 7578).
void read_form(std::string_view type, std::string_view body, PredictRequest& out) {
  const std::string boundary = "--" + parameter_of(type, "boundary");
  constexpr size_t kMaxHead = 4096;
  if (boundary.size() <= 2 || boundary.size() > 80 || !body.starts_with(boundary))
    reject("", "the form has no boundary, or does not begin with it");
  for (size_t at = boundary.size(); body.substr(at, 2) != "--";) {
    const size_t head = at + 2;
    const size_t end = body.substr(0, head + kMaxHead).find("\r\n\r\n", at);
    if (body.substr(at, 2) != "\r\n" || end == body.npos)
      reject("", "a field of the form is malformed");
    std::string name;
    for (const std::string& line : split(body.substr(head, end > head ? end - head : 0), '\n'))
      if (lower_ascii(line).starts_with("content-disposition:"))
        name = parameter_of(trim(line), "name");
    const size_t content = end + 4;
    const size_t next = body.find("\r\n" + boundary, content);
    if (next == body.npos) reject("", "the form does not end with its boundary");
    add_form_field(out, name, body.substr(content, next - content));
    at = next + 2 + boundary.size();
  }
}

std::string from_query(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? digit(text[i + 1]) : -1;
    const int low = high >= 0 ? digit(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(16 * high + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

void read_query(std::string_view query, PredictRequest& out) {
  if (query.empty()) return;
  for (const std::string& pair : split(query, '&')) {
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string name = pair.substr(0, equals);
    const std::string value =
        from_query(std::string_view(pair).substr(std::min(equals + 1, pair.size())));
    if (name == "model")
      out.model = value;
    else if (name == "decode")
      out.decode = read_truth(name, value);
    else
      reject(name, "unknown parameter '", printable(name.substr(0, 60)),
             "' of the target, expected model or decode");
  }
}

}  // namespace

PredictRequest read_predict_request(std::string_view type, std::string_view query,
                                    std::string_view body) {
  PredictRequest out;
  read_query(query, out);
  const std::string name = lower_ascii(trim(type.substr(0, type.find(';'))));
  const auto one_file = [&](PredictRequest::Kind kind) {
    if (body.empty()) reject("", "the request has no content");
    out.kind = kind;
    out.files.emplace_back(body);
  };
  if (name.starts_with("image/")) {
    one_file(PredictRequest::Kind::kImages);
  } else if (name.starts_with("audio/")) {
    one_file(PredictRequest::Kind::kSounds);
  } else if (name == "application/x-npz" || name == "application/octet-stream") {
    one_file(PredictRequest::Kind::kNpz);
  } else if (name == "multipart/form-data") {
    read_form(type, body, out);
  } else {
    JsonBody reader(out);
    nlohmann::json::sax_parse(body, &reader);
  }
  if (out.kind == PredictRequest::Kind::kNone)
    reject("inputs", "there are no 'inputs', 'rows', 'images' or 'sounds'");
  return out;
}

}  // namespace paddle::serve
