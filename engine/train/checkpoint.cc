#include "train/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/safetensors.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using Named = std::vector<std::pair<std::string, Array>>;

Named weights_of(const Store& store) {
  Named out;
  for (const auto& [name, p] : store.parameters) out.push_back({name, p.value});
  for (const auto& [name, value] : store.states)
    if (is_model_state(name)) out.push_back({name, value});
  return out;
}

Named optimizer_of(const Store& store) {
  Named out;
  for (const auto& [name, value] : store.states)
    if (!is_model_state(name)) out.push_back({name, value});
  return out;
}

uint64_t bytes_of(const Named& tensors) {
  uint64_t bytes = 0;
  for (const auto& [name, a] : tensors)
    bytes += static_cast<uint64_t>(storage_bytes(a.dtype, a.size()));
  return bytes;
}

std::string text_of(const Array& a) { return text(a.dtype) + str(a.shape); }

bool is_step_name(const std::string& name) {
  return !name.empty() && name.size() < 19 &&
         name.find_first_not_of("0123456789") == std::string::npos;
}

void remove_folder(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// Points `latest` at a checkpoint; the link is made beside and renamed.
void point_latest(const fs::path& folder, const std::string& name) {
  const fs::path temporary = folder / (".latest-" + std::to_string(getpid()));
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(name, temporary, error);
  if (!error) fs::rename(temporary, folder / "latest", error);
  if (error) fail(ErrorCode::kDevice, (folder / "latest").string(), ": ", error.message());
}

}  // namespace

std::string write_checkpoint(const std::string& folder, const Store& store,
                             const CheckpointContent& content) {
  ensure_directory(folder);
  const Named weights = weights_of(store), optimizer = optimizer_of(store);
  const uint64_t needed =
      bytes_of(weights) + bytes_of(optimizer) + content.module.size() + (1 << 20);
  const uint64_t free = free_space(folder);
  if (free < needed)
    fail(ErrorCode::kDevice, folder, ": a checkpoint needs ", human_bytes(needed),
         ", the disk has ", human_bytes(free), " left; nothing was written");
  const std::string name = std::to_string(content.state.step);
  const fs::path final_path = fs::path(folder) / name;
  const fs::path temporary = fs::path(folder) / (".writing-" + name);
  remove_folder(temporary);
  try {
    ensure_directory(temporary.string());
    write_file_atomically((temporary / "config.yaml").string(), content.config);
    write_file_atomically((temporary / "module.txt").string(), content.module);
    formats::write_safetensors((temporary / "model.safetensors").string(), weights);
    formats::write_safetensors((temporary / "optimizer.safetensors").string(), optimizer);
    const RunState& s = content.state;
    nlohmann::json state = {{"version", 1},
                            {"step", s.step},
                            {"epoch", s.position.epoch},
                            {"sample", s.position.sample},
                            {"samples", s.samples},
                            {"seconds", s.seconds},
                            {"seed", store.seed},
                            {"train_loss_sum", s.train_loss_sum},
                            {"train_loss_count", s.train_loss_count},
                            {"best_step", s.best_step}};
    if (s.best) state["best"] = *s.best;
    write_file_atomically((temporary / "state.json").string(), state.dump(2) + "\n");
    sync_directory(temporary.string());
    std::error_code error;
    if (fs::exists(final_path)) remove_folder(final_path);
    fs::rename(temporary, final_path, error);
    if (error) fail(ErrorCode::kDevice, final_path.string(), ": ", error.message());
    sync_directory(folder);
    point_latest(folder, name);
  } catch (...) {
    remove_folder(temporary);
    throw;
  }
  return final_path.string();
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
  const auto steps = list_checkpoints(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i)
    if (std::find(spare.begin(), spare.end(), steps[i]) == spare.end())
      remove_folder(fs::path(folder) / std::to_string(steps[i]));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(".writing-")) remove_folder(entry.path());
}

RunState read_checkpoint(const std::string& path, Store& store) {
  const auto file = [&](const char* name) { return (fs::path(path) / name).string(); };
  RunState s;
  const std::string raw = read_file(file("state.json"), 1 << 20, ErrorCode::kModel);
  const nlohmann::json state = nlohmann::json::parse(raw, nullptr, false);
  try {
    if (state.at("version").get<int>() != 1)
      fail(ErrorCode::kModel, file("state.json"), ": needs a newer version of this program");
    s.step = state.at("step").get<int64_t>();
    s.position.epoch = state.at("epoch").get<int64_t>();
    s.position.sample = state.at("sample").get<int64_t>();
    s.samples = state.at("samples").get<int64_t>();
    s.seconds = state.at("seconds").get<double>();
    s.train_loss_sum = state.at("train_loss_sum").get<double>();
    s.train_loss_count = state.at("train_loss_count").get<int64_t>();
    s.best_step = state.at("best_step").get<int64_t>();
    if (state.contains("best")) s.best = state.at("best").get<double>();
    store.seed = state.at("seed").get<uint64_t>();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, file("state.json"), ": is damaged");
  }
  const formats::SafetensorsReader weights(file("model.safetensors")),
      optimizer(file("optimizer.safetensors"));
  // Everything is read before anything is changed; the copies let the file be replaced later.
  const auto copied = [](Array mapped) {
    Array own = Array::empty(mapped.dtype, mapped.shape);
    std::memcpy(own.raw(), mapped.raw(), static_cast<size_t>(storage_bytes(own.dtype, own.size())));
    return own;
  };
  for (const auto& entry : weights.entries()) {
    const auto it = store.parameters.find(entry.name);
    Array value = copied(weights.read(entry));
    if (it != store.parameters.end()) {
      if (it->second.value.shape != value.shape || it->second.value.dtype != value.dtype)
        fail(ErrorCode::kModel, path, ": parameter '", entry.name, "' is ", text_of(value),
             ", the model needs ", text_of(it->second.value),
             "; this is a checkpoint of another model");
      it->second.value = std::move(value);
    } else if (const auto st = store.states.find(entry.name); st != store.states.end()) {
      if (st->second.shape != value.shape)
        fail(ErrorCode::kModel, path, ": state '", entry.name, "' has another shape");
      st->second = std::move(value);
    } else {
      fail(ErrorCode::kModel, path, ": '", entry.name,
           "' is no parameter of this model; this is a checkpoint of another model");
    }
  }
  for (const auto& [name, p] : store.parameters)
    if (!weights.find(name))
      fail(ErrorCode::kModel, path, ": lacks the parameter '", name,
           "'; this is a checkpoint of another model");
  for (const auto& entry : optimizer.entries())
    store.states[entry.name] = copied(optimizer.read(entry));
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

LoadReport load_weights(const std::string& file, Store& store) {
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
    const Array value = reader.read(*entry);
    Array own = Array::empty(target.dtype, target.shape);
    const Array cast = value.cast(target.dtype);
    std::memcpy(own.raw(), cast.raw(), static_cast<size_t>(storage_bytes(own.dtype, own.size())));
    target = std::move(own);
    report.matched.push_back(name);
  };
  for (auto& [name, p] : store.parameters) load(name, p.value);
  for (auto& [name, value] : store.states)
    if (is_model_state(name)) load(name, value);
  for (const auto& entry : reader.entries())
    if (!store.parameters.count(entry.name) && !store.states.count(entry.name))
      report.unused.push_back(entry.name);
  return report;
}

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
  for (const std::string& n : report.unused)
    if (!allowed(n, allow_unused)) bad.push_back("'" + n + "' is unused");
  for (const std::string& n : report.mismatched) {
    const std::string name = n.substr(0, n.find(" ("));
    if (!allowed(name, allow_missing) || !allowed(name, allow_unused)) bad.push_back(n);
  }
  if (bad.empty()) return;
  std::string shown = join(std::span(bad).subspan(0, std::min<size_t>(bad.size(), 4)), ", ");
  if (bad.size() > 4) shown += str(" and ", bad.size() - 4, " more");
  fail(ErrorCode::kModel, file, ": the weights do not fit the model: ", shown);
}

void write_weights(const std::string& file, const Store& store) {
  formats::write_safetensors(file, weights_of(store));
}

}  // namespace paddle::train
