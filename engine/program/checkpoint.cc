#include "program/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/hex.h"
#include "formats/safetensors.h"
#include "ir/module.h"
#include "program/checkpoint_files.h"
#include "program/folders.h"
#include "runtime/execute.h"
#include "tables/segments.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;
using Named = std::vector<std::pair<std::string, Array>>;

std::string text_of(const Array& a) { return text(a.dtype) + str(a.shape); }

/// The files whose sizes and checksums a checkpoint keeps.
std::vector<std::string> checked_files(const nlohmann::json& files) {
  std::vector<std::string> names(std::begin(kCheckedFiles), std::end(kCheckedFiles));
  for (const auto& [name, entry] : files.items())
    if (name.starts_with(std::string(tables::kTablesFolder) + "/") &&
        name.find("..") == std::string::npos)
      names.push_back(name);
  return names;
}

/// Its size; kModel if a file is not the one that was written.
uint64_t check_file(const fs::path& folder, const std::string& name, const nlohmann::json& files) {
  const auto file = MappedFile::open((folder / name).string(), ErrorCode::kModel);
  if (file->size() != files.at(name).at("bytes").get<uint64_t>() ||
      crc32(file->bytes()) != files.at(name).at("crc32").get<uint32_t>())
    fail(ErrorCode::kModel, file->path(), ": is damaged (its checksum differs)");
  return file->size();
}

void check_files(const fs::path& folder, const nlohmann::json& state) {
  if (!state.contains("files")) return;  // written before there were checksums
  const auto& files = state.at("files");
  for (const std::string& name : checked_files(files)) check_file(folder, name, files);
}

/// The parameter whose optimizer state or gradient this is: "optimizer/a.weight/moment" and
/// "gradient/a.weight" belong to "a.weight".
std::string parameter_of(const std::string& state) {
  const size_t begin = state.find('/') + 1;
  return state.starts_with("gradient/") ? state.substr(begin)
                                        : state.substr(begin, state.rfind('/') - begin);
}

/// Whether an optimizer may have a state of this shape for a parameter: that of the parameter, with
/// single axes of size 1, or one number.
bool is_state_shape(const Dims& state, const Dims& parameter) {
  return state.empty() || (state.size() == parameter.size() &&
                           std::equal(state.begin(), state.end(), parameter.begin(),
                                      [](int64_t s, int64_t p) { return s == p || s == 1; }));
}

/// All arrays of a checkpoint against those of the store; nothing is changed.
struct Staged {
  std::vector<std::pair<Array*, Array>> replaced;
  Named added;
};

[[noreturn]] void reject_other_model(const std::string& path, const std::string& why) {
  throw OtherModelError(ErrorCode::kModel,
                        path + ": " + why + "; this is a checkpoint of another model");
}

Staged stage(const std::string& path, ParameterStore& store,
             const formats::SafetensorsReader& weights, const formats::SafetensorsReader& optimizer,
             const FurtherTensors& further, bool updated) {
  Staged staged;
  const auto is_further = [&](const std::string& name) { return further.has && further.has(name); };
  const auto replace = [&](const std::string& name, Array& target, const Array& value) {
    if (target.shape != value.shape || target.dtype != value.dtype)
      reject_other_model(
          path, str("'", name, "' is ", text_of(value), ", the model needs ", text_of(target)));
    staged.replaced.emplace_back(&target, runtime::copied(value));
  };
  for (const auto& entry : weights.entries()) {
    if (is_further(entry.name)) continue;
    const auto parameter = store.parameters.find(entry.name);
    const auto state = store.states.find(entry.name);
    Array* master = store.master(entry.name);
    if (parameter != store.parameters.end())
      replace(entry.name, master ? *master : parameter->second.value, weights.read(entry));
    else if (state != store.states.end()) {
      replace(entry.name, state->second, weights.read(entry));
      const auto start = store.sequence_starts.find(entry.name);
      if (start != store.sequence_starts.end())
        replace(entry.name, start->second, weights.read(entry));
    } else
      reject_other_model(path, "'" + entry.name + "' is not a parameter of this model");
  }
  for (const auto& [name, p] : store.parameters)
    if (!weights.find(name)) reject_other_model(path, "it lacks the parameter '" + name + "'");
  for (const auto& entry : optimizer.entries()) {
    if (is_further(entry.name)) continue;
    const bool is_sequence = entry.name.starts_with(kSequencePrefix);
    const auto state =
        store.states.find(is_sequence ? entry.name.substr(kSequencePrefix.size()) : entry.name);
    if (state != store.states.end()) {
      replace(entry.name, state->second, optimizer.read(entry));
      continue;
    }
    if (is_note(entry.name)) continue;
    // An eager run makes the optimizer's states in its first step.
    const auto owner = store.parameters.find(parameter_of(entry.name));
    if (is_sequence || is_model_state(entry.name) || owner == store.parameters.end() ||
        !is_state_shape(entry.shape, owner->second.value.shape))
      reject_other_model(path, "'" + entry.name + "' is not a state of this run");
    staged.added.emplace_back(entry.name, runtime::copied(optimizer.read(entry)));
  }
  for (const auto& [name, value] : store.states) {
    if (is_master(name) || is_accumulated(name) || is_note(name)) continue;
    const bool there = is_model_state(name) ? weights.find(name) : optimizer.find(name);
    if (!there && (updated || is_model_state(name)))
      reject_other_model(path, "it lacks the state '" + name + "'");
  }
  return staged;
}

Watch watch_of(const nlohmann::json& json) {
  Watch out;
  out.waited = json.at("waited").get<int64_t>();
  out.cooldown = json.at("cooldown").get<int64_t>();
  out.factor = json.at("factor").get<double>();
  if (json.contains("best")) out.best = json.at("best").get<double>();
  return out;
}

}  // namespace

void point_latest(const std::string& folder, int64_t step) {
  const fs::path temporary = fs::path(folder) / (".latest-" + std::to_string(getpid()));
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(std::to_string(step), temporary, error);
  if (!error) fs::rename(temporary, fs::path(folder) / "latest", error);
  if (error)
    fail(ErrorCode::kDevice, (fs::path(folder) / "latest").string(), ": ", error.message());
}

std::vector<int64_t> list_checkpoints(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (is_step_name(name) && fs::exists(entry.path() / "state.json"))
      steps.push_back(std::stoll(name));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void prune_checkpoints(const std::string& folder, int64_t keep, const std::vector<int64_t>& spare) {
  const auto steps = list_checkpoints(folder);  // oldest first
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i)
    if (std::find(spare.begin(), spare.end(), steps[i]) == spare.end())
      remove_folder(fs::path(folder) / std::to_string(steps[i]));
  remove_leftovers(folder);
}

void remove_leftovers(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    for (const char* start : {".writing-", ".removing-", ".latest-"})
      if (name.starts_with(start)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) remove_folder(path);
}

void set_aside(const std::string& folder, int64_t step) {
  const fs::path from = fs::path(folder) / std::to_string(step);
  std::error_code ignored;
  fs::remove_all(from.string() + ".damaged", ignored);
  fs::rename(from, from.string() + ".damaged", ignored);
}

CheckpointFiles check_checkpoint(const std::string& path) {
  CheckpointFiles out;
  const std::string state_file = (fs::path(path) / "state.json").string();
  nlohmann::json state;
  std::vector<std::string> names;
  try {
    state = nlohmann::json::parse(read_file(state_file, 1 << 20, ErrorCode::kModel));
    if (!state.contains("files"))
      fail(ErrorCode::kModel, state_file, ": has no checksums (it is of an older version)");
    names = checked_files(state.at("files"));
  } catch (const nlohmann::json::exception&) {
    out.problems.push_back(state_file + ": is damaged");
  } catch (const Error& error) {
    out.problems.push_back(error.message());
  }
  for (const std::string& name : names) try {
      out.bytes += check_file(path, name, state.at("files"));
      ++out.whole;
    } catch (const nlohmann::json::exception&) {
      out.problems.push_back(str(state_file, ": has no checksum of ", name));
    } catch (const Error& error) {
      out.problems.push_back(error.message());
    }
  return out;
}

RunState read_checkpoint(const std::string& path, ParameterStore& store,
                         const FurtherTensors& further) {
  const auto file = [&](const char* name) { return (fs::path(path) / name).string(); };
  RunState s;
  const std::string raw = read_file(file("state.json"), 1 << 20, ErrorCode::kModel);
  const nlohmann::json state = nlohmann::json::parse(raw, nullptr, false);
  uint64_t seed = 0;
  try {
    if (state.at("version").get<int>() != 1)
      fail(ErrorCode::kModel, file("state.json"), ": needs a newer version of this program");
    s.step = state.at("step").get<int64_t>();
    s.position.epoch = state.at("epoch").get<int64_t>();
    s.position.sample = state.at("sample").get<int64_t>();
    if (const std::string place = state.value("data_place", ""); !place.empty()) {
      s.data_place.resize(place.size() / 2);
      if (place.size() % 2 != 0 ||
          !read_hex_digits(place, std::as_writable_bytes(std::span(s.data_place))))
        fail(ErrorCode::kModel, file("state.json"), ": is damaged");
    }
    s.samples = state.at("samples").get<int64_t>();
    s.seconds = state.at("seconds").get<double>();
    s.train_loss_sum = state.at("train_loss_sum").get<double>();
    s.train_loss_count = state.at("train_loss_count").get<int64_t>();
    s.best_step = state.at("best_step").get<int64_t>();
    if (state.contains("best")) s.best = state.at("best").get<double>();
    s.evaluation_due = state.value("evaluation_due", false);
    s.evaluated_step = state.value("evaluated_step", int64_t{-1});
    s.table_day = state.value("table_day", int64_t{0});
    if (state.contains("loss_sums")) s.loss_sums = state.at("loss_sums").get<std::vector<double>>();
    if (state.contains("early_stop")) s.early_stop = watch_of(state.at("early_stop"));
    if (state.contains("plateaus"))
      for (const auto& each : state.at("plateaus")) s.plateaus.push_back(watch_of(each));
    seed = state.at("seed").get<uint64_t>();
    check_files(path, state);
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, file("state.json"), ": is damaged");
  }
  const formats::SafetensorsReader weights(file("model.safetensors")),
      optimizer(file("optimizer.safetensors"));
  Staged staged = stage(path, store, weights, optimizer, further, s.step > 0);
  if (further.read) further.read(weights, optimizer);
  for (auto& [target, value] : staged.replaced) *target = std::move(value);
  for (auto& [name, value] : staged.added) store.states[name] = std::move(value);
  for (const auto& [name, p] : store.parameters) store.round_from_master(name);
  store.seed = seed;
  return s;
}

std::string LoadReport::text() const {
  std::string out = str(matched.size(), " tensors matched");
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    out += str("\n  ", what, " (", names.size(), "): ");
    for (size_t i = 0; i < std::min<size_t>(names.size(), 8); ++i)
      out += (i ? ", " : "") + names[i];
    if (names.size() > 8) out += ", …";
  };
  list("shape or type differs", mismatched);
  list("missing in the file", missing);
  list("unused in the file", unused);
  return out;
}

LoadReport load_weights(const std::string& file, ParameterStore& store, bool copied) {
  const formats::SafetensorsReader reader(file);
  LoadReport report;
  const auto load = [&](const std::string& name, Array& target) {
    const auto* entry = reader.find(name);
    if (!entry) {
      report.missing.push_back(name);
      return;
    }
    if (entry->shape != target.shape || !info(entry->dtype).has_kernels) {
      report.mismatched.push_back(str(name, " (", text(entry->dtype), str(entry->shape),
                                      " in the file, ", text_of(target), " in the model)"));
      return;
    }
    Array value = reader.read(*entry).cast(target.dtype);
    target = copied ? runtime::copied(value) : std::move(value);
    report.matched.push_back(name);
  };
  for (auto& [name, p] : store.parameters) {
    Array* master = store.master(name);
    load(name, master ? *master : p.value);
    store.round_from_master(name);
  }
  for (auto& [name, value] : store.states)
    if (is_model_state(name)) {
      load(name, value);
      const auto start = store.sequence_starts.find(name);
      if (start != store.sequence_starts.end()) start->second = runtime::copied(value);
    }
  for (const auto& entry : reader.entries())
    if (!store.parameters.count(entry.name) && !store.states.count(entry.name))
      report.unused.push_back(entry.name);
  return report;
}

namespace {

/// States of single sequences, such as the caches of generation, in the model folder that a file of
/// weights is in: functions for whole texts do not have them.
std::vector<std::string> sequence_states_of_folder(const std::string& weights) {
  const std::string module = (fs::path(weights).parent_path() / "module.txt").string();
  std::vector<std::string> out;
  if (!file_exists(module)) return out;
  for (const ir::Slot& state :
       ir::parse(read_file(module, uint64_t{1} << 30, ErrorCode::kModel), module).states)
    if (state.scope == ir::SlotScope::kSequence) out.push_back(state.name);
  return out;
}

}  // namespace

void check_report(const LoadReport& report, const std::string& file,
                  const std::vector<std::string>& allow_missing,
                  const std::vector<std::string>& allow_unused) {
  const auto allowed = [](const std::string& name, const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& p) { return matches_pattern(p, name); });
  };
  std::vector<std::string> bad;
  for (const std::string& n : report.missing)
    if (!allowed(n, allow_missing)) bad.push_back("'" + n + "' is missing");
  const auto own_states =
      report.unused.empty() ? std::vector<std::string>() : sequence_states_of_folder(file);
  for (const std::string& n : report.unused)
    if (!allowed(n, allow_unused) &&
        std::find(own_states.begin(), own_states.end(), n) == own_states.end())
      bad.push_back("'" + n + "' is unused");
  for (const std::string& n : report.mismatched) {
    const std::string name = n.substr(0, n.find(" ("));
    if (!allowed(name, allow_missing) || !allowed(name, allow_unused)) bad.push_back(n);
  }
  if (bad.empty()) return;
  std::string shown = join(std::span(bad).subspan(0, std::min<size_t>(bad.size(), 4)), ", ");
  if (bad.size() > 4) shown += str(" and ", bad.size() - 4, " more");
  fail(ErrorCode::kModel, file, ": the weights do not fit the model: ", shown);
}

void write_weights(const std::string& file, const ParameterStore& store) {
  Named weights;
  for (const CheckpointTensor& each : stored_weights(store))
    weights.emplace_back(
        each.name, each.start ? store.sequence_starts.at(each.name) : store.array(each.source));
  formats::write_safetensors(file, weights);
}

}  // namespace paddle::program
