#include "plugin/reader_adapter.h"

#include <algorithm>
#include <charconv>

#include "config/kind_keys.h"
#include "data/config/dataset_config.h"
#include "plugin/reader_state.h"
#include "plugin/stream_adapter.h"

namespace paddle::plugin {
namespace {

constexpr const char* kEpochSamples = "epoch_samples";

class PluginDataset final : public ReaderDataset {
 public:
  PluginDataset(const ReaderContext& context, const KindOptions& options,
                std::unique_ptr<ReaderState> state)
      : ReaderDataset(context, options, *state), state_(std::move(state)) {
    state_->call("size", [&](paddle_call*, void* opened) {
      size_ = context_.functions.size(opened);
      return PADDLE_OK;
    });
    if (size_ < 0) fail(ErrorCode::kData, context_.name, ": the size is ", size_);
  }

  int64_t size() const override { return size_; }

  void read(int64_t index, const data::ReadContext& context, data::Sample& out) const override {
    SampleWriter writer(fields_, out);
    state_->call("read", [&](paddle_call* call, void* opened) {
      const paddle_status status =
          context_.functions.read(opened, call, index, context.seed, context.epoch, writer.get());
      const std::string problem = status == PADDLE_OK || status == PADDLE_DECLINED
                                      ? writer.problem_of_whole()
                                      : writer.problem();
      if (problem.empty()) return status;
      return set_error(call, PADDLE_DATA, location(index, -1, -1) + ": " + problem, {});
    });
  }

  std::string location(int64_t index, int64_t field, int64_t) const override {
    return place_of(state_->location(index), index, field);
  }

 private:
  std::unique_ptr<ReaderState> state_;
  int64_t size_ = 0;
};

data::OwnSource source_of(const ReaderContext& context, const KindOptions& options,
                          int64_t epoch_samples) {
  data::OwnSource out;
  out.kind = context.name;
  out.open = [&context, options, epoch_samples]() -> data::DatasetPtr {
    if (is_stream(context)) return open_stream(context, options, epoch_samples);
    return std::make_shared<PluginDataset>(context, options,
                                           std::make_unique<ReaderState>(context, options));
  };
  // Other data of the same kind, where one key is its path.
  const auto is_path = [](const KindKey& key) { return key.type == KindKey::Type::kPath; };
  if (std::ranges::count_if(context.keys, is_path) == 1)
    out.of_file = [&context, options, epoch_samples,
                   name =
                       std::ranges::find_if(context.keys, is_path)->name](const std::string& path) {
      KindOptions changed = options;
      std::erase_if(changed, [&](const auto& option) { return option.first == name; });
      changed.emplace_back(name, path);
      return source_of(context, changed, epoch_samples);
    };
  return out;
}

}  // namespace

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

bool is_stream(const ReaderContext& context) { return context.functions.next != nullptr; }

data::DatasetKind dataset_kind_of(const ReaderContext& context) {
  const bool streams = is_stream(context);
  data::DatasetKind out;
  out.name = context.name;
  out.keys = [&context, streams] {
    config::Schema schema = config::schema_of(context.keys);
    if (streams)
      schema.add(kEpochSamples, config::Spec::integer().at_least(1).required().doc(
                                    "samples of the stream that make an epoch"));
    return schema;
  };
  out.read = [&context, streams](const config::Section& section) -> data::DatasetSource {
    return source_of(context, config::options_of(context.keys, section, data::resolved_path),
                     streams ? section.integer(kEpochSamples) : 0);
  };
  out.path_keys = {};
  for (const KindKey& key : context.keys)
    if (key.type == KindKey::Type::kPath) out.path_keys.push_back(key.name);
  out.has_parts = !streams;
  out.is_source = !streams;
  out.is_stream = streams;
  return out;
}

}  // namespace paddle::plugin
