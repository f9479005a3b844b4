#include "plugin/reader_adapter.h"

#include <algorithm>
#include <charconv>

#include "data/config/dataset_config.h"
#include "plugin/frame.h"
#include "plugin/host.h"

namespace paddle::plugin {
namespace {

constexpr size_t kMaxFields = 256;
constexpr int64_t kMaxSampleBytes = int64_t{1} << 32;

struct Option {
  std::string name, value;
};

class PluginDataset final : public data::Dataset {
 public:
  PluginDataset(const ReaderContext& context, const std::vector<Option>& options)
      : context_(context) {
    std::vector<const char*> names, values;
    for (const Option& option : options) {
      names.push_back(option.name.c_str());
      values.push_back(option.value.c_str());
    }
    for (const ReaderKey& key : context.keys)
      for (const Option& option : options)
        if (key.type == "path" && option.name == key.name) paths_.push_back(option.value);
    const paddle_options given = {sizeof given, static_cast<uint32_t>(options.size()), names.data(),
                                  values.data()};
    check("open",
          [&](paddle_call* call) { return context_.functions.open(call, &given, &state_); });
    try {
      describe();
    } catch (...) {
      close();
      throw;
    }
  }
  ~PluginDataset() override { close(); }

  int64_t size() const override { return size_; }
  const std::vector<data::Field>& fields() const override { return fields_; }

  void read(int64_t index, const data::ReadContext& context, data::Sample& out) const override {
    out.resize(fields_.size());
    Writer writer{*this, out, std::vector<bool>(fields_.size()), {}};
    const paddle_sample sample = {sizeof sample, static_cast<uint32_t>(fields_.size()), &writer,
                                  field_of_sample};
    check("read", [&](paddle_call* call) {
      const paddle_status status =
          context_.functions.read(state_, call, index, context.seed, context.epoch, &sample);
      if (!writer.problem.empty())
        return set_error(call, PADDLE_DATA, location(index, -1, -1) + ": " + writer.problem, {});
      return status;
    });
    for (size_t i = 0; i < fields_.size(); ++i)
      if (!writer.is_set[i])
        fail(ErrorCode::kData, location(index, -1, -1), ": the reader gives no field '",
             fields_[i].name, "'");
  }

  std::string location(int64_t index, int64_t field, int64_t) const override {
    std::string out = str(context_.name, " sample ", index);
    if (context_.functions.location) {
      char text[512] = "";
      const Frame frame(context_.plugin.c_str(), "location", context_.name.c_str());
      context_.functions.location(state_, index, text, sizeof text);
      text[sizeof text - 1] = '\0';
      if (text[0]) out = text;
    }
    if (field >= 0) out += ", field '" + fields_[static_cast<size_t>(field)].name + "'";
    return out;
  }
  std::vector<std::string> paths() const override { return paths_; }
  std::string source() const override {
    const std::string files = Dataset::source();
    return fingerprint_ ? str(files, " ", *fingerprint_) : files;
  }
  std::string fingerprint() const override { return fingerprint_ ? str(*fingerprint_) : ""; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    if (!fingerprint_) return {};
    return {{"fingerprint", str(*fingerprint_)}};
  }

 private:
  /// A sample that is filled in.
  struct Writer {
    const PluginDataset& dataset;
    data::Sample& sample;
    std::vector<bool> is_set;
    std::string problem;
  };
  static void* field_of_sample(void* context, uint32_t field, const int64_t* shape, int32_t rank) {
    auto& w = *static_cast<Writer*>(context);
    void* memory = nullptr;
    const paddle_status status = guarded(nullptr, [&] {
      const auto& fields = w.dataset.fields_;
      if (field >= fields.size())
        w.problem = str("the reader gives field ", field, " of ", fields.size());
      else if (w.is_set[field])
        w.problem = "the reader gives the field '" + fields[field].name + "' twice";
      else
        memory = w.dataset.memory_of(fields[field], w.sample[field], shape, rank, w.problem);
      if (memory) w.is_set[field] = true;
    });
    if (status != PADDLE_OK && w.problem.empty()) w.problem = "not enough memory";
    return memory;
  }
  static void* memory_of(const data::Field& field, data::Value& value, const int64_t* shape,
                         int32_t rank, std::string& problem) {
    const Dims given(shape, shape + std::max(0, rank));
    bool fits = given.size() == field.shape.size();
    int64_t bytes = item_size(field.dtype);
    for (size_t i = 0; fits && i < given.size(); ++i) {
      fits = given[i] >= 0 && (field.shape[i] == -1 || field.shape[i] == given[i]) &&
             (given[i] == 0 || bytes <= kMaxSampleBytes / given[i]);
      bytes *= given[i];
    }
    if (!fits) {
      problem = str("the field '", field.name, "' has the shape ", given, ", the reader declares ",
                    field.shape);
      return nullptr;
    }
    value.reset(field.dtype, given);
    // A field without elements has an address, too.
    static std::byte none;
    return value.bytes() > 0 ? value.raw() : &none;
  }

  void describe() {
    const char* text = nullptr;
    {
      const Frame frame(context_.plugin.c_str(), "describe", context_.name.c_str());
      text = context_.functions.describe(state_);
    }
    for (const std::string& line : split(text ? text : "", '\n')) {
      if (trim(line).empty()) continue;
      data::Field field;
      try {
        field = parse_field(line);
      } catch (const Error& e) {
        fail(ErrorCode::kData, context_.name, ": describe: ", e.message());
      }
      if (find_field(field.name) >= 0)
        fail(ErrorCode::kData, context_.name, ": describe: two fields '", field.name, "'");
      fields_.push_back(std::move(field));
      if (fields_.size() > kMaxFields)
        fail(ErrorCode::kData, context_.name, ": describe: more than ", kMaxFields, " fields");
    }
    if (fields_.empty()) fail(ErrorCode::kData, context_.name, ": describe: no fields");
    const Frame frame(context_.plugin.c_str(), "size", context_.name.c_str());
    size_ = context_.functions.size(state_);
    if (size_ < 0) fail(ErrorCode::kData, context_.name, ": the size is ", size_);
    if (context_.functions.fingerprint) fingerprint_ = context_.functions.fingerprint(state_);
  }
  void close() {
    const Frame frame(context_.plugin.c_str(), "close", context_.name.c_str());
    context_.functions.close(state_);
  }
  template <class Function>
  void check(const char* what, Function&& function) const {
    paddle_call call;
    paddle_status status = PADDLE_INTERNAL;
    {
      const Frame frame(context_.plugin.c_str(), what, context_.name.c_str());
      status = call_plugin(frame, context_.plugin.c_str(), context_.name.c_str(),
                           [&] { return function(&call); });
    }
    if (status != PADDLE_OK) throw_status(call, status, context_.name);
  }

  const ReaderContext& context_;
  void* state_ = nullptr;
  std::vector<data::Field> fields_;
  std::vector<std::string> paths_;
  int64_t size_ = 0;
  std::optional<uint64_t> fingerprint_;
};

config::Spec spec_of(const std::string& type) {
  if (type == "integer") return config::Spec::integer();
  if (type == "real") return config::Spec::real();
  if (type == "boolean") return config::Spec::boolean();
  return config::Spec::text();
}

std::vector<Option> options_of(const ReaderContext& context, const config::Section& section) {
  std::vector<Option> out;
  for (const ReaderKey& key : context.keys) {
    if (!section.has(key.name)) continue;
    std::string value = key.type == "path"      ? data::path_of(section, key.name.c_str())
                        : key.type == "integer" ? str(section.integer(key.name))
                        : key.type == "real"    ? str(section.real(key.name))
                        : key.type == "boolean" ? str(section.boolean(key.name))
                                                : section.text(key.name);
    out.push_back({key.name, std::move(value)});
  }
  return out;
}

data::OwnSource source_of(const ReaderContext& context, const std::vector<Option>& options) {
  data::OwnSource out;
  out.kind = context.name;
  out.open = [&context, options] { return std::make_shared<PluginDataset>(context, options); };
  // Other data of the same kind, where one key is its path.
  const auto is_path = [](const ReaderKey& key) { return key.type == "path"; };
  if (std::ranges::count_if(context.keys, is_path) == 1)
    out.of_file = [&context, options, name = std::ranges::find_if(context.keys, is_path)->name](
                      const std::string& path) {
      std::vector<Option> changed = options;
      std::erase_if(changed, [&](const Option& option) { return option.name == name; });
      changed.push_back({name, path});
      return source_of(context, changed);
    };
  return out;
}

}  // namespace

std::vector<ReaderKey> read_reader_keys(const char* yaml, const std::string& file) {
  std::vector<ReaderKey> out;
  if (!yaml || !*yaml) return out;
  const config::Node node = config::parse_document(yaml, file);
  if (node.is_null()) return out;
  if (!node.is_map())
    throw Error(ErrorCode::kConfig, "keys: expected a map, found " + node.describe(),
                node.location());
  static const std::vector<std::string> kTypes = {"path", "text", "integer", "real", "boolean"};
  for (const config::Entry& entry : node.entries) {
    const std::string& name = entry.key.text;
    const auto reject = [&](const std::string& why, const config::Node& at) {
      throw Error(ErrorCode::kConfig, str("keys: ", name, ": ", why), at.location());
    };
    if (name == "kind" || name.empty()) reject("is not a name for a key", entry.key);
    if (!entry.value.is_map()) reject("expected a map, found " + entry.value.describe(), entry.key);
    std::string type;
    if (const config::Node* const given = entry.value.find("type")) type = given->as_string();
    if (std::ranges::find(kTypes, type) == kTypes.end())
      reject("type: expected one of " + join(kTypes, ", ") + ", found '" + type + "'", entry.value);
    config::Spec spec = spec_of(type);
    for (const config::Entry& each : entry.value.entries) {
      const std::string& key = each.key.text;
      if (key == "required") {
        if (each.value.as_bool()) spec.required();
      } else if (key == "default") {
        spec.fallback(each.value.as_string());
      } else if (key == "doc") {
        spec.doc(each.value.as_string());
      } else if (key != "type") {
        reject("unknown key '" + key + "', expected type, required, default or doc", each.key);
      }
    }
    out.push_back({name, type, std::move(spec)});
  }
  return out;
}

data::Field parse_field(const std::string& line) {
  const auto reject = [&]() {
    fail(ErrorCode::kData, "'", printable(line),
         "' is not a field, expected a line such as 'image: uint8[3, -1, -1]'");
  };
  data::Field out;
  const size_t colon = line.find(':'), open = line.find('['), close = line.find(']');
  if (colon == std::string::npos || open == std::string::npos || close == std::string::npos ||
      colon > open || open > close)
    reject();
  out.name = std::string(trim(line.substr(0, colon)));
  const bool is_word = !out.name.empty() && std::ranges::all_of(out.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  const auto dtype = parse_dtype(trim(line.substr(colon + 1, open - colon - 1)));
  if (!is_word || !dtype || *dtype == DType::kString || info(*dtype).bits % 8 != 0) reject();
  out.dtype = *dtype;
  const auto number = [&](std::string_view text, int64_t least) {
    int64_t value = 0;
    const std::string_view digits = trim(text);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end.ec != std::errc() || end.ptr != digits.data() + digits.size() || value < least)
      reject();
    return value;
  };
  const std::string sizes = line.substr(open + 1, close - open - 1);
  if (!trim(sizes).empty())
    for (const std::string& size : split(sizes, ',')) out.shape.push_back(number(size, -1));
  const std::string_view rest = trim(std::string_view(line).substr(close + 1));
  constexpr std::string_view kClasses = "classes ";
  if (rest.starts_with(kClasses))
    out.class_count = number(rest.substr(kClasses.size()), 1);
  else if (!rest.empty())
    reject();
  return out;
}

data::DatasetKind dataset_kind_of(const ReaderContext& context) {
  data::DatasetKind out;
  out.name = context.name;
  out.keys = [&context] {
    config::Schema schema;
    for (const ReaderKey& key : context.keys) schema.add(key.name, key.spec);
    return schema;
  };
  out.read = [&context](const config::Section& section) -> data::DatasetSource {
    return source_of(context, options_of(context, section));
  };
  out.path_keys = {};
  for (const ReaderKey& key : context.keys)
    if (key.type == "path") out.path_keys.push_back(key.name);
  return out;
}

}  // namespace paddle::plugin
