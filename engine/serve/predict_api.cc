#include "serve/predict_api.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/thread_scope.h"
#include "formats/npz.h"
#include "infer/results.h"
#include "serve/api_error.h"
#include "serve/predict_inputs.h"

namespace paddle::serve {

namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* kNpzType = "application/x-npz";
/// How long a request waits for its result before it looks for its client again.
constexpr int kWaitMilliseconds = 50;

std::string dumped(const Ordered& value) {
  return value.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

/// The shortest number that reads back to the same value of the type; null where JSON has none.
template <class T>
void append_number(std::string& out, T value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  out += text;
  if (text.find_first_of(".e") == text.npos) out += ".0";
}

void append_element(std::string& out, const Array& array, int64_t i) {
  if (is_complex(array.dtype)) {  // [real, imaginary]
    const std::complex<double> value = array.complex_number(i);
    out += '[';
    append_number(out, value.real());
    out += ',';
    append_number(out, value.imag());
    out += ']';
  } else if (array.dtype == DType::kF64) {
    append_number(out, array.number(i));
  } else if (is_float(array.dtype)) {
    append_number(out, static_cast<float>(array.number(i)));
  } else if (is_bool(array.dtype)) {
    out += array.integer(i) != 0 ? "true" : "false";
  } else if (array.dtype == DType::kU64) {
    out += std::to_string(static_cast<uint64_t>(array.integer(i)));
  } else {
    out += std::to_string(array.integer(i));
  }
}

/// Nested lists of `element(out, i)`, in row-major order.
template <class Element>
void append_lists(std::string& out, const Dims& shape, size_t axis, int64_t& next,
                  const Element& element) {
  if (axis == shape.size()) return element(out, next++);
  out += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) out += ',';
    append_lists(out, shape, axis + 1, next, element);
  }
  out += ']';
}

using OutputContent = std::variant<Array, formats::NpyStrings>;

std::string lists_of(const OutputContent& content) {
  std::string out;
  int64_t next = 0;
  if (const auto* strings = std::get_if<formats::NpyStrings>(&content)) {
    append_lists(out, strings->shape, 0, next, [&](std::string& text, int64_t i) {
      text += dumped(strings->items[static_cast<size_t>(i)]);
    });
    return out;
  }
  const Array array = std::get<Array>(content).contiguous();
  append_lists(out, array.shape, 0, next,
               [&](std::string& text, int64_t i) { append_element(text, array, i); });
  return out;
}

std::shared_ptr<Predictor> find_predictor(const std::string& name, const Predictors& predictors) {
  if (predictors.empty())
    throw ApiError{404, "no model for predictions is served, only language models", "model"};
  if (name.empty()) {
    if (predictors.size() == 1) return predictors[0]->current();
    reject("model", "there is no 'model', and more than one is served");
  }
  std::vector<std::string> names;
  for (const auto& each : predictors) {
    if (each->name() == name) return each->current();
    names.push_back(each->name());
  }
  throw ApiError{404,
                 str("there is no model '", printable(name), "' for predictions",
                     did_you_mean(name, names), "; served are ", join(names, ", ")),
                 "model"};
}

/// An error of the model, without the place in its files.
ApiError failure_of(const Error& error) {
  const bool is_ours = error.code() == ErrorCode::kDevice || error.code() == ErrorCode::kInternal;
  return {is_ours ? 500 : 400, error.message()};
}

/// Cancels a job at the end of its request.
class Submitted {
 public:
  Submitted(Predictor& predictor, PredictJobPtr job, bool continues)
      : predictor_(predictor), job_(std::move(job)) {
    if (!predictor_.submit(job_, continues))
      throw ApiError{429, str("the queue of '", predictor.name(), "' is full (",
                              predictor.limits().queue, " requests); try again later")};
  }
  ~Submitted() { job_->cancel(); }
  Submitted(const Submitted&) = delete;
  Submitted& operator=(const Submitted&) = delete;

  PredictJob& result(const std::function<void()>& check) {
    while (!job_->wait(kWaitMilliseconds)) check();
    if (job_->error) throw failure_of(*job_->error);
    return *job_;
  }

 private:
  Predictor& predictor_;
  PredictJobPtr job_;
};

/// The beginning of an answer: the model, and its version in a store.
std::string head_of(const Predictor& predictor) {
  std::string out = "{\"model\":" + dumped(predictor.name());
  if (!predictor.version().empty()) out += ",\"version\":" + dumped(predictor.version());
  return out;
}

std::string json_of(const Predictor& predictor,
                    const std::vector<std::pair<std::string, OutputContent>>& outputs) {
  std::string out = head_of(predictor) + ",\"outputs\":{";
  for (const auto& [name, content] : outputs) {
    if (out.back() != '{') out += ',';
    out += dumped(name) + ':' + lists_of(content);
  }
  return out + "}}";
}

std::string npz_of(const std::vector<std::pair<std::string, OutputContent>>& outputs) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/outputs.npz";
  formats::NpzWriter writer(path);
  for (const auto& [name, content] : outputs)
    std::visit([&, &key = name](const auto& each) { writer.add(key, each); }, content);
  writer.close();
  return read_file(path, uint64_t{1} << 40);
}

}  // namespace

PredictAnswer answer_prediction(const HttpRequest& http, const Predictors& predictors,
                                Metrics& metrics, const std::function<void()>& check) {
  const auto begin = std::chrono::steady_clock::now();
  // A connection's thread leaves the others to the models.
  const ThreadScope threads(1);
  PredictRequest request = read_predict_request(http.header("content-type"), http.query, http.body);
  const std::shared_ptr<Predictor> found = find_predictor(request.model, predictors);
  Predictor& predictor = *found;
  using Kind = PredictRequest::Kind;
  const bool decode =
      request.decode.value_or(request.kind != Kind::kInputs && request.kind != Kind::kNpz);
  const bool wants_npz = http.header("accept") == kNpzType;
  if (wants_npz && decode)
    reject("decode", "an NPZ file has the outputs of the model: 'decode' must be false");
  PredictInputs inputs(predictor.model(), request, predictor.input_options(decode));
  std::vector<std::pair<std::string, OutputContent>> outputs;
  std::string rows;
  if (inputs.values()) {
    if (decode) reject("decode", "'decode' is true, which values of this model have no form for");
    Submitted submitted(predictor, std::make_shared<PredictJob>(*inputs.values()), false);
    for (onnx::NamedOutput& each : submitted.result(check).value_outputs)
      outputs.emplace_back(std::move(each.name), std::move(each.content));
  } else {
    infer::JoinedOutputs joined;
    std::vector<std::string> names;
    std::optional<infer::InputBatch> batch = inputs.next();
    std::unique_ptr<Submitted> running;
    std::optional<infer::InputBatch> shape_of_running;
    for (bool continues = false; batch || running; continues = true) {
      std::unique_ptr<Submitted> next;
      infer::InputBatch given;  // with what the results of a batch need
      if (batch) {
        given.skipped = batch->skipped;
        next = std::make_unique<Submitted>(
            predictor, std::make_shared<PredictJob>(std::move(*batch), decode, inputs.shown()),
            continues);
      }
      if (running) {
        PredictJob& job = running->result(check);
        names = job.names;
        joined.add(*shape_of_running, job.outputs);
        for (const std::string& row : job.rows) rows += (rows.empty() ? "" : ",") + row;
      }
      running = std::move(next);
      shape_of_running = std::move(given);
      // The next batch is read while this one is computed.
      batch = running ? inputs.next() : std::nullopt;
    }
    try {
      if (!decode)
        for (auto& [name, array] : joined.arrays(names)) outputs.emplace_back(name, array);
    } catch (const Error& error) {
      throw failure_of(error);
    }
  }
  metrics.observe(str("request_duration_seconds{", metric_label("model", predictor.name()), "}"),
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (wants_npz) return {kNpzType, npz_of(outputs)};
  if (!decode) return {"application/json", json_of(predictor, outputs)};
  return {"application/json", head_of(predictor) + ",\"predictions\":[" + rows + "]}"};
}

std::string predictor_info(const Predictor& predictor) {
  const program::Model& model = predictor.model();
  Ordered out = {{"id", predictor.name()},
                 {"object", "model"},
                 {"created", predictor.created()},
                 {"owned_by", "paddle"}};
  if (!predictor.version().empty()) out["version"] = predictor.version();
  const auto ports = [](const std::vector<std::pair<std::string, TensorType>>& values) {
    Ordered list = Ordered::array();
    for (const auto& [name, type] : values) {
      Ordered port = {{"name", name}, {"dtype", text(type.dtype)}};
      Ordered shape = Ordered::array();
      for (const Dim& dim : type.shape)
        shape.push_back(dim.constant() ? Ordered(*dim.constant()) : Ordered(dim.text()));
      port["shape"] = type.ranked ? shape : Ordered();
      list.push_back(port);
    }
    return list;
  };
  out["inputs"] = ports(model.inputs());
  out["outputs"] = ports(model.declared_outputs());
  if (const auto columns = table_columns(model, predictor.run_inputs()); !columns.empty())
    out["columns"] = columns;
  if (!model.metadata().classes.empty()) out["classes"] = model.metadata().classes;
  out["max_batch"] = predictor.joins() ? predictor.limits().max_batch : 1;
  return dumped(out);
}

}  // namespace paddle::serve
