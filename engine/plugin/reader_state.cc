#include "plugin/reader_state.h"

#include <algorithm>

#include "plugin/option_struct.h"

namespace paddle::plugin {
namespace {

constexpr size_t kMaxFields = 256;
constexpr int64_t kMaxSampleBytes = int64_t{1} << 32;

}  // namespace

ReaderState::ReaderState(const ReaderContext& context, const KindOptions& options)
    : context_(context) {
  const OptionStruct given(options);
  call("open",
       [&](paddle_call* c, void*) { return context_.functions.open(c, given.get(), &state_); });
}

ReaderState::~ReaderState() {
  const Frame frame(context_.plugin.c_str(), "close", context_.name.c_str());
  context_.functions.close(state_);
}

std::vector<data::Field> ReaderState::describe() const {
  const char* text = nullptr;
  {
    const Frame frame(context_.plugin.c_str(), "describe", context_.name.c_str());
    text = context_.functions.describe(state_);
  }
  const auto reject = [&](const auto&... why) {
    fail(ErrorCode::kData, context_.name, ": describe: ", why...);
  };
  std::vector<data::Field> out;
  for (const std::string& line : split(text ? text : "", '\n')) {
    if (trim(line).empty()) continue;
    data::Field field;
    try {
      field = parse_field(line);
    } catch (const Error& e) {
      reject(e.message());
    }
    if (std::ranges::find(out, field.name, &data::Field::name) != out.end())
      reject("two fields '", field.name, "'");
    out.push_back(std::move(field));
    if (out.size() > kMaxFields) reject("more than ", kMaxFields, " fields");
  }
  if (out.empty()) reject("no fields");
  return out;
}

std::optional<uint64_t> ReaderState::fingerprint() const {
  if (!context_.functions.fingerprint) return std::nullopt;
  const Frame frame(context_.plugin.c_str(), "fingerprint", context_.name.c_str());
  return context_.functions.fingerprint(state_);
}

std::string ReaderState::location(int64_t index) const {
  if (!context_.functions.location) return "";
  char text[512] = "";
  const Frame frame(context_.plugin.c_str(), "location", context_.name.c_str());
  context_.functions.location(state_, index, text, sizeof text);
  text[sizeof text - 1] = '\0';
  return text;
}

SampleWriter::SampleWriter(const std::vector<data::Field>& fields, data::Sample& sample)
    : fields_(fields), sample_(sample), is_set_(fields.size()) {
  sample.resize(fields.size());
  struct_ = {sizeof struct_, static_cast<uint32_t>(fields.size()), this, memory_of_field};
}

std::string SampleWriter::problem_of_whole() const {
  if (!problem_.empty()) return problem_;
  for (size_t i = 0; i < fields_.size(); ++i)
    if (!is_set_[i]) return "the reader gives no field '" + fields_[i].name + "'";
  return "";
}

void* SampleWriter::memory_of_field(void* context, uint32_t field, const int64_t* shape,
                                    int32_t rank) {
  auto& writer = *static_cast<SampleWriter*>(context);
  void* memory = nullptr;
  const paddle_status status =
      guarded(nullptr, [&] { memory = writer.memory_of(field, shape, rank); });
  if (status != PADDLE_OK && writer.problem_.empty()) writer.problem_ = "not enough memory";
  return memory;
}

void* SampleWriter::memory_of(uint32_t field, const int64_t* shape, int32_t rank) {
  if (field >= fields_.size()) {
    problem_ = str("the reader gives field ", field, " of ", fields_.size());
    return nullptr;
  }
  const data::Field& own = fields_[field];
  if (is_set_[field]) {
    problem_ = "the reader gives the field '" + own.name + "' twice";
    return nullptr;
  }
  const Dims given(shape, shape + std::max(0, rank));
  bool fits = given.size() == own.shape.size();
  int64_t bytes = item_size(own.dtype);
  for (size_t i = 0; fits && i < given.size(); ++i) {
    fits = given[i] >= 0 && (own.shape[i] == -1 || own.shape[i] == given[i]) &&
           (given[i] == 0 || bytes <= kMaxSampleBytes / given[i]);
    bytes *= given[i];
  }
  if (!fits) {
    problem_ = str("the field '", own.name, "' has the shape ", given, ", the reader declares ",
                   own.shape);
    return nullptr;
  }
  data::Value& value = sample_[field];
  value.reset(own.dtype, given);
  is_set_[field] = true;
  // A field without elements has an address, too.
  static std::byte none;
  return value.bytes() > 0 ? value.raw() : &none;
}

ReaderDataset::ReaderDataset(const ReaderContext& context, const KindOptions& options,
                             const ReaderState& state)
    : context_(context), fields_(state.describe()), fingerprint_(state.fingerprint()) {
  for (const KindKey& key : context.keys)
    for (const auto& [name, value] : options)
      if (key.type == KindKey::Type::kPath && name == key.name) paths_.push_back(value);
}

std::string ReaderDataset::source() const {
  const std::string files = Dataset::source();
  return fingerprint_ ? str(files, " ", *fingerprint_) : files;
}

std::string ReaderDataset::fingerprint() const { return fingerprint_ ? str(*fingerprint_) : ""; }

std::vector<std::pair<std::string, std::string>> ReaderDataset::facts() const {
  if (!fingerprint_) return {};
  return {{"fingerprint", str(*fingerprint_)}};
}

std::string ReaderDataset::place_of(std::string own, int64_t index, int64_t field) const {
  if (own.empty()) own = str(context_.name, " sample ", index);
  if (field >= 0) own += ", field '" + fields_[static_cast<size_t>(field)].name + "'";
  return own;
}

}  // namespace paddle::plugin
