#include "train/config/run_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "config/kind_keys.h"
#include "config/sections.h"
#include "data/dataset_kind.h"
#include "data/datasets/bad_samples.h"
#include "data/named_dataset.h"
#include "data/transform_info.h"
#include "plugin/plugin.h"
#include "program/model_config.h"
#include "program/predict_config.h"
#include "program/prediction.h"
#include "program/row_table.h"
#include "train/config/compile_config.h"
#include "train/config/mixed_precision.h"
#include "train/config/nonfinite_policy.h"
#include "train/config/padding_masks.h"
#include "train/config/parallel_checks.h"
#include "train/config/run_keys.h"

namespace paddle::train {
namespace {

constexpr const char* kTableDay = "1 epoch";

using config::Schema;
using config::Section;
using config::Spec;

Schema make_schema() {
  Schema s;
  s.add("name", Spec::text().doc("name of the run; default: the file's stem"));
  s.add("extends", Spec::any().doc("a config that this one completes and overrides"));
  s.add("plugins",
        Spec::list(Spec::any())
            .doc("plug-ins to load: files (.so, .plugin.yaml), {path, sha256, options}, or "
                 "names of loaded ones"));
  s.add("model", Spec::any().doc("a model file[:variant], an ONNX file, a Hugging Face folder or a "
                                 "GGUF file, or a model in place"));
  s.add("models",
        Spec::any().doc(
            "in place of 'model': several by name; each a model file[:variant], a model in "
            "place, or {file, weights, frozen, params}"));
  s.add("export", Spec::text().doc("which of the 'models' goes to model/; default: the first"));
  s.one_of({"model", "models"});
  s.add("params", Spec::any().doc("values for the model's params"));
  s.add("frozen", Spec::list(Spec::text())
                      .or_else(Spec::text())
                      .fallback("[]")
                      .doc("patterns of parameter names that get no updates"));
  s.add("init", init_spec());
  s.add("lora", lora_spec());
  s.add("loss", Spec::any().doc("an expression over outputs and data fields"));
  s.add("step", Spec::any().doc("a body with update(loss)"));
  s.one_of({"loss", "step"});
  s.add("metrics", Spec::any().doc("what evaluation reports"));
  s.add("predict", program::predict_spec().optional());
  Spec optimizer = optimizer_spec();
  s.add("optimizer", optimizer.doc("how parameters are updated"));
  s.add("optimizers",
        Spec::map_of(named_optimizer_spec())
            .doc("in place of 'optimizer': several by name, for updates of a 'step'"));
  s.one_of({"optimizer", "optimizers"});
  Spec schedule = optim::schedule_spec();
  s.add("schedule", schedule.fallback("constant"));
  Schema clip;
  clip.add("value", Spec::real().above(0).doc("largest magnitude of an element"))
      .add("norm", Spec::real().above(0).doc("largest norm of the gradient of one parameter"))
      .add("global_norm", Spec::real().above(0).doc("largest norm of all gradients together"));
  s.add("clip", Spec::map(clip).fallback("{}").doc("bounds on gradients"));
  s.add("data", Spec::map(data::data_schema()).required().doc("what is trained and validated on"));
  Schema train;
  train.add("epochs", Spec::integer().at_least(0).at_most(1e9).fallback("0").doc(
                          "passes over the data; 0: no bound"));
  train.add("steps",
            Spec::integer().at_least(0).at_most(1e15).fallback("0").doc("updates; 0: no bound"));
  train.add("accumulate", Spec::integer().at_least(1).at_most(1 << 20).fallback("1").doc(
                              "micro-batches that a batch is split into"));
  train.add("threads", Spec::integer().at_least(0).at_most(1024).fallback("0").doc(
                           "threads of the run, if --threads is not given; 0: all cores"));
  train.add("log_every",
            Spec::updates().at_least(1).fallback("50").doc("updates or epochs between lines"));
  train.add(
      "on_nonfinite",
      Spec::word({"stop", "skip", "rollback"})
          .fallback("stop")
          .doc("after a loss or gradients with NaN or infinity: end the run, leave out the "
               "update, or continue from the newest checkpoint with the data after the batch"));
  train.add("evaluate_every",
            Spec::text().fallback("1 epoch").doc("'N' updates, 'N epochs' or 'never'"));
  train.add("checkpoint_every",
            Spec::text().fallback("1 epoch").doc("'N' updates, 'N epochs' or 'never'"));
  train.add("checkpoint_async", Spec::boolean().fallback("false").doc(
                                    "train on while a checkpoint is written from a copy"));
  train.add("tables",
            Spec::text()
                .fallback("memory")
                .or_else(Spec::map_of(Spec::any()))
                .doc("where the rows of tables (sparse_embedding) are kept: memory, or a kind that "
                     "a plug-in adds, such as acme.rocks or {kind: acme.rocks, …} with its keys"));
  train.add("table_day",
            Spec::text().fallback(kTableDay).doc(
                "'N' updates, 'N epochs' or 'never': a day of the tables, see tables"));
  train.add("table_deltas",
            Spec::integer().at_least(0).at_most(1000).fallback("8").doc(
                "tables in files of their own: checkpoints with only the changed rows between "
                "whole ones; 0: none"));
  train.add("adapt_threads",
            Spec::boolean().fallback("false").doc(
                "steps run on one thread while other programs keep the cores so busy that this is "
                "faster; sums may be rounded otherwise"));
  train.add("keep_checkpoints",
            Spec::integer().at_least(1).fallback("3").doc("newest ones that are kept"));
  train.add("keep_zeros", Spec::list(Spec::text())
                              .or_else(Spec::text())
                              .fallback("[]")
                              .doc("patterns of parameters whose zeros stay zero: pruned weights"));
  add_feature_keys(train);
  s.add("train", Spec::map(train).fallback("{}").doc("length of the run, evaluation, checkpoints"));
  s.add("tables", table_policies_spec());
  s.add("parameter_server", Spec::map(parameter_server_schema())
                                .fallback("{}")
                                .doc("which processes have the rows of tables"));
  s.add("precision",
        Spec::word({"float32", "float64", "bfloat16", "bf16", "float16", "f16", "fp16"})
            .fallback("float32")
            .doc("dtype of the computation; 16-bit types train in mixed precision"));
  s.add("amp", Spec::map(amp_schema()).fallback("{}").doc("with bfloat16 or float16"));
  s.add("deterministic",
        Spec::boolean().fallback("false").doc("the same bits in every run; every kernel complies"));
  s.add("seed", Spec::integer().at_least(0).fallback("0").doc(
                    "of initial weights, random operations and shuffling"));
  s.add("compile", Spec::map(compile_schema()).fallback("{}").doc("what the compiler may do"));
  s.add("quant", Spec::map(quant::quant_schema())
                     .fallback("null")
                     .doc("what paddle-quant does; with 'train', paddle-train prepares for it"));
  s.add("parallel",
        Spec::map(parallel_schema()).fallback("{}").doc("how ranks share batches and weights"));
  config::add_other_sections(s);
  return s;
}

/// Patterns of the config and whole models that no optimizer changes.
void freeze(const Section& s, const std::vector<program::NamedModel>& models,
            const std::optional<Adapters>& adapters, std::vector<OptimizerConfig>& optimizers) {
  const auto add = [&](const std::string& key, const std::vector<std::string>& match) {
    if (match.empty()) return;
    optim::ParameterGroup group;
    group.key = key;
    group.match = match;
    group.frozen = true;
    for (OptimizerConfig& optimizer : optimizers) optimizer.options.groups.push_back(group);
  };
  if (adapters)
    for (OptimizerConfig& optimizer : optimizers)
      for (const optim::ParameterGroup& group : adapter_groups(*adapters))
        optimizer.options.groups.push_back(group);
  add("frozen", s.texts("frozen"));
  for (const program::NamedModel& model : models)
    if (model.frozen) add("models." + model.name + ".frozen", {model.name + ".*"});
}

/// Rejects settings that a step with several updates does not have.
void check_several(const Section& s, const RunConfig& config, config::Diagnostics& diagnostics) {
  if (config.models.size() > 1 && !s.has("step") && !config.distillation)
    diagnostics.add(ErrorCode::kConfig, "'models' needs a 'step' that calls them",
                    s.location("models"));
  if (config.optimizers.empty() || config.optimizers[0].name.empty()) return;
  if (config.parallel.pipeline > 1)
    diagnostics.add(
        ErrorCode::kConfig,
        "parallel.pipeline: is not possible with 'optimizers': the stages of a pipeline "
        "are parts of one loss, and each update of a step has one of its own",
        config.parallel.where);
  if (config.mixed && config.mixed->scaling)
    diagnostics.add(ErrorCode::kConfig,
                    "precision: a loss scale is not possible with 'optimizers'; use bfloat16",
                    s.location("precision"));
}

/// Rejects settings that an optimizer which searches along lines does not have.
void check_minimizer(const Section& s, const RunConfig& config, config::Diagnostics& diagnostics) {
  for (const OptimizerConfig& optimizer : config.optimizers) {
    const optim::OptimizerKind& kind = *optimizer.options.rule.kind;
    if (!kind.is_minimizer) continue;
    const auto reject = [&](const std::string& key, const std::string& what) {
      diagnostics.add(ErrorCode::kConfig, str(key, ": ", kind.name, " ", what), s.location(key));
    };
    if (!optimizer.name.empty())
      reject("optimizers", "is possible as the only optimizer, 'optimizer:', of a run");
    if (config.mixed)
      reject("precision",
             "compares losses of near points, so that precision is float32 or float64");
    if (config.clip.value || config.clip.norm || config.clip.global_norm)
      reject("clip", "finds the length of its steps itself; leave clip out");
    if (config.average || config.swa || !config.keep_zeros.empty())
      reject("train", "does not support ema, swa and keep_zeros");
    if (config.parallel.mesh().size() > 1)
      diagnostics.add(ErrorCode::kConfig, str("parallel: ", kind.name, " runs on one rank"),
                      config.parallel.where);
  }
}

/// The fields of a dataset as far as its options name them; none where they are not known.
std::vector<std::string> stated_fields(const data::DatasetOptions& options) {
  std::vector<std::string> names;
  if (const auto* records = std::get_if<data::CsvFileOptions>(&options.source))
    for (const data::CsvField& field : records->fields) names.push_back(field.name);
  if (const auto* boxes = std::get_if<data::BoxOptions>(&options.source))
    names = {boxes->image_field, boxes->box_field, boxes->label_field};
  return names;
}

/// Rejects what evaluations decide where there are none.
void check_evaluated(const Section& s, RunConfig& config, config::Diagnostics& diagnostics) {
  const Section train = s.section("train");
  const auto needs = [&](const std::string& what, const SourceLocation& place) {
    diagnostics.add(ErrorCode::kConfig,
                    what + " needs data.valid and train.evaluate_every: it is decided there",
                    place);
  };
  for (OptimizerConfig& optimizer : config.optimizers) {
    if (!optimizer.schedule.plateau) continue;
    const Section section =
        optimizer.name.empty() || !s.at("optimizers").find(optimizer.name)->find("schedule")
            ? s.section("schedule")
            : Section(*s.at("optimizers").find(optimizer.name)->find("schedule"));
    optimizer.schedule.plateau->larger_is_better =
        read_watched(section.text("metric"), section.text("mode"), config.metrics, section,
                     "metric", "schedule", diagnostics)
            .larger_is_better;
    if (!config.data.valid || config.evaluate.steps + config.evaluate.epochs == 0)
      needs(section.text("name"), section.location("metric"));
  }
  if (config.data.valid && config.evaluate.steps + config.evaluate.epochs > 0) return;
  if (config.early_stop)
    needs("train.early_stop", train.location("early_stop"));
  else if (!config.best.name.empty())
    needs("train.best", train.location("best"));
}

}  // namespace

std::vector<std::string> model_inputs(const RunConfig& config) {
  std::vector<std::string> names;
  for (const program::NamedModel& model : config.models)
    for (const lang::Input& input : model.program->model.inputs) names.push_back(input.name.text);
  return names;
}

std::string precision_name(const RunConfig& config) {
  return config.use_float64 ? "float64" : config.mixed ? text(config.mixed->cast.low) : "float32";
}

const Schema& run_schema() {
  // Made again once something that it lists has been registered; callers may hold earlier ones.
  static std::mutex mutex;
  static std::map<uint64_t, Schema> schemas;
  const std::lock_guard lock(mutex);
  const uint64_t version = optim::optimizer_kinds().version() + optim::schedule_kinds().version() +
                           data::dataset_kinds().version() + data::transform_registry().version() +
                           program::table_kinds().version();
  const auto at = schemas.find(version);
  return at != schemas.end() ? at->second : schemas.emplace(version, make_schema()).first->second;
}

namespace {

/// As stated, or that of the file. The config of a run is called config.yaml, whatever the run is
/// called: its record has the name. A name that such a config hands on to one that extends it is
/// that of the other run.
std::string name_of_run(const Section& s, const std::string& path) {
  namespace fs = std::filesystem;
  const auto record_of = [](const fs::path& file) {
    return (file.parent_path() / "run.json").string();
  };
  const auto is_of_run = [&](const fs::path& file) {
    return file.filename() == "config.yaml" && file_exists(record_of(file));
  };
  if (s.has("name")) {
    const fs::path stated = s.location("name").file;
    std::error_code ignored;
    const bool inherited = is_of_run(stated) && !fs::equivalent(stated, path, ignored);
    if (!inherited) return s.text("name");
  } else if (is_of_run(path)) {
    const auto record = nlohmann::json::parse(read_file(record_of(path)), nullptr, false);
    if (record.is_object() && record.contains("name") && record["name"].is_string())
      return record["name"].get<std::string>();
  }
  return fs::path(path).stem().string();
}

/// Checks keys of a document that fits the schema, as far as no other key matters: code, metrics,
/// optimizers and `amp`.
void check_run_keys(const config::Node& document, config::Diagnostics& diagnostics) {
  const Section s(document);
  for (const char* const key : {"step", "loss"})
    if (s.has(key)) diagnostics.guard([&] { lang::read_code(s.at(key), diagnostics); });
  if (s.has("metrics")) diagnostics.guard([&] { read_metrics(s.at("metrics"), diagnostics); });
  if (s.has("optimizer") || s.has("optimizers"))
    diagnostics.guard([&] { read_optimizers(s, diagnostics); });
  diagnostics.guard([&] { read_mixed(s, diagnostics); });
}

}  // namespace

void register_run_keys() {
  config::register_keys({.owner = "paddle-train", .schema = run_schema, .check = check_run_keys});
}

bool is_config(const std::string& path) {
  if (is_directory(path) || path.ends_with(".onnx") || !file_exists(path)) return false;
  config::Diagnostics ignored;
  const config::Node root = config::read_document(path, ignored);
  const char* const keys[] = {"data", "optimizer", "train", "extends"};
  return std::any_of(std::begin(keys), std::end(keys),
                     [&](const char* key) { return root.find(key) != nullptr; });
}

RunConfig read_config(const std::string& path, const std::vector<std::string>& overrides) {
  config::Diagnostics diagnostics;
  RunConfig config;
  config.file = path;
  config::Node document = config::read_extended(path, diagnostics);
  for (const std::string& text : overrides) {
    config::Override change = config::parse_override(text);
    config::complete_path(change, run_schema());
    config::apply_override(document, change);
  }
  config::resolve_references(document, diagnostics);
  plugin::load_configured(document);
  if (config::Node* data = document.find("data"); data && data->is_map())
    data::expand_datasets(*data, diagnostics);
  run_schema().resolve(document, "", diagnostics);
  if (config::Node* data = document.find("data"); data && data->is_map())
    data::make_data_paths_absolute(*data, diagnostics);
  program::resolve_model_paths(document, diagnostics);
  diagnostics.raise();
  config.document = document;
  config.warnings = diagnostics.warnings();
  const Section s(config.document);
  config.name = name_of_run(s, path);
  // A run that is resumed reads its own config.yaml and keeps its name.
  config.document.set("name", config::make_scalar(config.name, config.document.source));
  if (config.name.empty() || config.name == "." || config.name == ".." ||
      config.name.find('/') != std::string::npos)
    diagnostics.add(ErrorCode::kConfig,
                    "'name': expected the name of a folder, found '" + config.name + "'",
                    s.location("name"));
  diagnostics.guard([&] { config.models = program::read_models(config.document); });
  if (s.has("step")) {
    diagnostics.guard([&] {
      config.loss = lang::read_code(s.at("step"), diagnostics);
      const auto& sites = config.loss.sites;
      if (std::none_of(sites.begin(), sites.end(),
                       [](const lang::CallSite& site) { return site.callee == "update"; }))
        throw Error(ErrorCode::kConfig, "step: the body never calls update(loss)",
                    s.location("step"));
    });
  } else {
    diagnostics.guard([&] { config.loss = lang::read_code(s.at("loss"), diagnostics); });
  }
  if (s.has("metrics"))
    diagnostics.guard([&] { config.metrics = read_metrics(s.at("metrics"), diagnostics); });
  diagnostics.guard([&] { config.optimizers = read_optimizers(s, diagnostics); });
  diagnostics.guard([&] { config.adapters = read_adapters(s); });
  diagnostics.guard([&] {
    config.distillation = read_distillation(s);
    if (!config.distillation) return;
    if (s.has("step") || config.models.size() > 1)
      throw Error(
          ErrorCode::kConfig,
          "quant.train.teacher: needs 'model' and 'loss'; a 'step' calls its teacher itself",
          s.node().find("quant")->location());
    config.models.push_back(config.distillation->model);
  });
  freeze(s, config.models, config.adapters, config.optimizers);
  const Section clip = s.section("clip");
  if (clip.has("value")) config.clip.value = clip.real("value");
  if (clip.has("norm")) config.clip.norm = clip.real("norm");
  if (clip.has("global_norm")) config.clip.global_norm = clip.real("global_norm");
  if (config.clip.value.has_value() + config.clip.norm.has_value() +
          config.clip.global_norm.has_value() >
      1)
    diagnostics.add(ErrorCode::kConfig, "clip: give one of value, norm and global_norm",
                    s.location("clip"));

  const Section train = s.section("train");
  config.epochs = train.integer("epochs");
  config.steps = train.integer("steps");
  const bool has_passes = s.section("data").has("passes");
  if (has_passes && config.epochs > 0)
    diagnostics.add(ErrorCode::kConfig,
                    "train.epochs: has no effect with data.passes, each of which is trained once; "
                    "data.passes.to and train.steps end a run",
                    train.location("epochs"));
  if (has_passes && train.text("table_day") != kTableDay)
    diagnostics.add(ErrorCode::kConfig,
                    "train.table_day: has no effect with data.passes, whose days are counted: "
                    "data.passes.shrink",
                    train.location("table_day"));
  if (config.epochs == 0 && config.steps == 0 && !has_passes)
    diagnostics.add(ErrorCode::kConfig, "train: give epochs or steps",
                    s.at("train").source_kind() == config::SourceKind::kDefault
                        ? config.document.location()
                        : s.location("train"));
  config.accumulate = train.integer("accumulate");
  config.threads = static_cast<int>(train.integer("threads"));
  config.log_every = *parse_update_count(train.text("log_every"));
  diagnostics.guard([&] { config.evaluate = read_interval(train, "train", "evaluate_every"); });
  diagnostics.guard([&] { config.checkpoint = read_interval(train, "train", "checkpoint_every"); });
  read_nonfinite_policy(train, config, diagnostics);
  config.keep_checkpoints = train.integer("keep_checkpoints");
  config.checkpoint_async = train.boolean("checkpoint_async");
  if (const std::string& best = train.text("best"); !best.empty())
    config.best = read_watched(best, train.text("best_mode"), config.metrics, train, "best",
                               "train", diagnostics);
  config.early_stop = read_early_stop(train, config.metrics, diagnostics);
  if (config.early_stop && config.best.name.empty()) config.best = config.early_stop->metric;
  config.average = read_averaging(train);
  diagnostics.guard([&] { config.swa = read_equal_averaging(train); });
  if (config.average && config.swa)
    diagnostics.add(ErrorCode::kConfig, "train: give one of ema and swa", train.location("swa"));
  config.keep_zeros = train.texts("keep_zeros");
  config.digests = train.boolean("digests");
  config.log_gradient_norm = train.has("log_gradient_norm") ? train.boolean("log_gradient_norm")
                                                            : config.clip.global_norm.has_value();
  diagnostics.guard([&] { config.max_time = read_max_time(train); });
  diagnostics.guard([&] { config.init = read_init(s); });
  config.seed = static_cast<uint64_t>(s.integer("seed"));
  config.use_float64 = s.text("precision") == "float64";
  config.mixed = read_mixed(s, diagnostics);
  diagnostics.guard([&] { config.quantization = program::read_quantization(s.node()); });
  if (config.quantization && config.adapters)
    diagnostics.add(ErrorCode::kConfig,
                    "quant.train: adapters (lora) cannot be trained with quantization",
                    s.node().find("quant")->location());
  if (config.quantization && config.use_float64)
    diagnostics.add(ErrorCode::kConfig, "quant.train: float64 cannot be trained with quantization",
                    s.location("precision"));
  config.deterministic = s.boolean("deterministic");
  read_compile(s.section("compile"), config, diagnostics);
  config.tables =
      config::read_choice(program::table_kinds(), train.at("tables"), "train.tables", diagnostics);
  diagnostics.guard([&] {
    config.table_policies = read_table_policies(s, diagnostics);
    config.table_day = read_interval(train, "train", "table_day");
    config.table_deltas = train.integer("table_deltas");
    config.parameter_server = read_parameter_server(s.section("parameter_server"), diagnostics);
  });
  config.adapt_threads = train.boolean("adapt_threads");
  if (config.adapt_threads && (config.deterministic || config.compile.exact))
    diagnostics.add(
        ErrorCode::kConfig,
        str("train.adapt_threads: the number of threads may round sums otherwise, which ",
            config.deterministic ? "deterministic" : "compile.exact", ": true excludes"),
        train.location("adapt_threads"));
  diagnostics.guard([&] {
    config.parallel = read_parallel(s.section("parallel"), s.location("parallel"), diagnostics);
  });
  check_parallel(config, diagnostics);
  diagnostics.guard(
      [&] { config.data = data::read_data(s.section("data"), config.seed, diagnostics); });
  if (diagnostics.empty()) diagnostics.guard([&] { add_padding_masks(config, diagnostics); });
  const std::vector<std::string> inputs = model_inputs(config);
  config.data.takes_segments = std::find(inputs.begin(), inputs.end(), "segments") != inputs.end();
  data::require_targets(config.data, inputs);
  config.accumulate =
      micro_batches(config.parallel, config.accumulate, config.data.loader.batch_size,
                    train.location("accumulate"), diagnostics);
  for (OptimizerConfig& optimizer : config.optimizers)
    diagnostics.guard([&] {
      const Section section = optimizer.name.empty()
                                  ? s.section("optimizer")
                                  : Section(*s.at("optimizers").find(optimizer.name));
      scale_rates(section, config.data.loader.batch_size, optimizer);
    });
  if (!config.models.empty())
    program::check_predict(config.document, config.exported(), stated_fields(config.data.train),
                           diagnostics);
  check_several(s, config, diagnostics);
  check_minimizer(s, config, diagnostics);
  check_evaluated(s, config, diagnostics);
  diagnostics.raise();
  config.warnings = diagnostics.warnings();
  if (config.data.loader.batch_size < config.accumulate)
    throw Error(ErrorCode::kConfig,
                str("train.accumulate: a batch of ", config.data.loader.batch_size,
                    " samples cannot have ", config.accumulate, " micro-batches"),
                train.location("accumulate"));
  return config;
}

}  // namespace paddle::train
