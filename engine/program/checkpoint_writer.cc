#include "program/checkpoint_writer.h"

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "program/checkpoint_files.h"
#include "program/folders.h"
#include "runtime/execute.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

const Array& array_in(const ParameterStore& store, const std::string& name) {
  const auto parameter = store.parameters.find(name);
  return parameter != store.parameters.end() ? parameter->second.value : store.states.at(name);
}

nlohmann::json to_json(const Watch& watch) {
  nlohmann::json out = {
      {"waited", watch.waited}, {"cooldown", watch.cooldown}, {"factor", watch.factor}};
  if (watch.best) out["best"] = *watch.best;
  return out;
}

/// Size and checksum of each file, to tell a damaged checkpoint from a good one.
nlohmann::json checksums(const fs::path& folder) {
  auto out = nlohmann::json::object();
  for (const char* name : kCheckedFiles) {
    const auto file = MappedFile::open((folder / name).string(), ErrorCode::kModel);
    out[name] = {{"bytes", file->size()}, {"crc32", crc32(file->bytes())}};
  }
  return out;
}

std::string state_text(const RunState& s, uint64_t seed, const fs::path& folder) {
  nlohmann::json state = {{"version", 1},
                          {"step", s.step},
                          {"epoch", s.position.epoch},
                          {"sample", s.position.sample},
                          {"samples", s.samples},
                          {"seconds", s.seconds},
                          {"seed", seed},
                          {"train_loss_sum", s.train_loss_sum},
                          {"train_loss_count", s.train_loss_count},
                          {"best_step", s.best_step},
                          {"evaluation_due", s.evaluation_due},
                          {"evaluated_step", s.evaluated_step},
                          {"files", checksums(folder)}};
  if (s.best) state["best"] = *s.best;
  if (!s.loss_sums.empty()) state["loss_sums"] = s.loss_sums;
  state["early_stop"] = to_json(s.early_stop);
  for (const Watch& each : s.plateaus) state["plateaus"].push_back(to_json(each));
  return state.dump(2) + "\n";
}

}  // namespace

CheckpointWriter::File CheckpointWriter::file_of(const std::string& path,
                                                 std::vector<Tensor> tensors,
                                                 const ParameterStore& store) {
  std::vector<formats::SafetensorsEntry> entries;
  for (const Tensor& each : tensors) {
    const Array& array = array_in(store, each.source);
    entries.push_back({.name = each.name, .dtype = array.dtype, .shape = array.shape});
  }
  return {formats::SafetensorsParts(path, std::move(entries)), std::move(tensors)};
}

CheckpointWriter::CheckpointWriter(const std::string& folder, const ParameterStore& store,
                                   CheckpointContent content,
                                   const std::map<std::string, std::string>& averages)
    : folder_(folder),
      content_(std::move(content)),
      seed_(store.seed),
      starts_(store.sequence_starts) {
  const std::string step = std::to_string(content_.state.step);
  temporary_ = (fs::path(folder) / (".writing-" + step)).string();
  std::vector<Tensor> weights, optimizer;
  std::map<std::string, std::string> exchanged;
  for (const auto& [name, p] : store.parameters) {
    std::string source = store.master(name) ? "master/" + name : name;
    if (const auto average = averages.find(name); average != averages.end()) {
      exchanged[average->second] = source;
      source = average->second;
    }
    weights.push_back({name, source, false, {}});
  }
  for (const auto& [name, value] : store.states) {
    if (is_model_state(name)) {
      weights.push_back({name, name, starts_.count(name) > 0, {}});
    } else if (!is_master(name) && !is_accumulated(name)) {
      const auto at = exchanged.find(name);
      optimizer.push_back({name, at == exchanged.end() ? name : at->second, false, {}});
    }
  }
  for (const auto& [name, start] : starts_)
    optimizer.push_back({str(kSequencePrefix, name), name, false, {}});
  const auto path = [&](const char* name) { return (fs::path(temporary_) / name).string(); };
  files_.push_back(file_of(path("model.safetensors"), std::move(weights), store));
  files_.push_back(file_of(path("optimizer.safetensors"), std::move(optimizer), store));
}

CheckpointWriter::~CheckpointWriter() {
  if (created_) remove_folder(temporary_);
}

void CheckpointWriter::create() {
  ensure_directory(folder_);
  uint64_t needed = content_.module.size() + (1 << 20);
  for (const File& file : files_) needed += file.parts.bytes();
  const uint64_t free = free_space(folder_);
  if (free < needed)
    fail(ErrorCode::kDevice, folder_, ": a checkpoint needs ", human_bytes(needed),
         ", the disk has ", human_bytes(free), " left; nothing was written");
  remove_folder(temporary_);
  created_ = true;
  ensure_directory(temporary_);
  const fs::path folder(temporary_);
  write_file_atomically((folder / "config.yaml").string(), content_.config);
  write_file_atomically((folder / "module.txt").string(), content_.module);
  for (const File& file : files_) file.parts.create();
  if (content_.further) content_.further((folder / "inference").string());
}

void CheckpointWriter::take(const PartOf& part_of, bool copied) {
  for (File& file : files_)
    for (Tensor& each : file.tensors) {
      auto part = part_of(each.source);
      if (!part) continue;
      if (each.start) {
        part->values = starts_.at(each.name).contiguous();
        part->runs = {{0, 0, part->values.size()}};
      }
      if (copied) part->values = runtime::copied(part->values);
      each.part = std::move(*part);
    }
}

void CheckpointWriter::write() {
  for (File& file : files_) {
    file.parts.open();
    for (Tensor& each : file.tensors) {
      if (each.part.runs.empty()) continue;
      const auto* const bytes = static_cast<const std::byte*>(each.part.values.raw());
      const auto item = static_cast<size_t>(item_size(each.part.values.dtype));
      for (const TensorPart::Run& run : each.part.runs)
        file.parts.write(each.name, run.in_whole,
                         {bytes + static_cast<size_t>(run.in_part) * item,
                          static_cast<size_t>(run.count) * item});
      each.part = {};
    }
    file.parts.sync();
  }
}

std::string CheckpointWriter::finish() {
  const fs::path temporary(temporary_),
      place = fs::path(folder_) / std::to_string(content_.state.step);
  write_file_atomically((temporary / "state.json").string(),
                        state_text(content_.state, seed_, temporary));
  sync_directory(temporary_);
  put_in_place(temporary, place);
  created_ = false;
  sync_directory(folder_);
  point_latest(folder_, content_.state.step);
  return place.string();
}

std::string write_checkpoint(const std::string& folder, const ParameterStore& store,
                             const CheckpointContent& content) {
  CheckpointWriter writer(folder, store, content, {});
  writer.create();
  writer.take(
      [&](const std::string& name) {
        TensorPart part{array_in(store, name).contiguous(), {}};
        part.runs = {{0, 0, part.values.size()}};
        return std::optional(part);
      },
      false);
  writer.write();
  return writer.finish();
}

}  // namespace paddle::program
