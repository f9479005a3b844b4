#include "program/checkpoint_writer.h"

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/hex.h"
#include "base/text.h"
#include "program/checkpoint_files.h"
#include "program/folders.h"
#include "runtime/execute.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;

nlohmann::json to_json(const Watch& watch) {
  nlohmann::json out = {
      {"waited", watch.waited}, {"cooldown", watch.cooldown}, {"factor", watch.factor}};
  if (watch.best) out["best"] = *watch.best;
  return out;
}

/// Size and checksum of each file, to tell a damaged checkpoint from a good one.
nlohmann::json checksums(const fs::path& folder, const std::vector<std::string>& also) {
  auto out = nlohmann::json::object();
  std::vector<std::string> names(std::begin(kCheckedFiles), std::end(kCheckedFiles));
  names.insert(names.end(), also.begin(), also.end());
  for (const std::string& name : names) {
    const auto file = MappedFile::open((folder / name).string(), ErrorCode::kModel);
    out[name] = {{"bytes", file->size()}, {"crc32", crc32(file->bytes())}};
  }
  return out;
}

std::string state_text(const RunState& s, uint64_t seed, const fs::path& folder,
                       const std::vector<std::string>& checked_also) {
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
                          {"files", checksums(folder, checked_also)}};
  if (s.best) state["best"] = *s.best;
  if (!s.data_place.empty())
    state["data_place"] = hex_digits(std::as_bytes(std::span(s.data_place)));
  if (s.table_day > 0) state["table_day"] = s.table_day;
  if (!s.loss_sums.empty()) state["loss_sums"] = s.loss_sums;
  state["early_stop"] = to_json(s.early_stop);
  for (const Watch& each : s.plateaus) state["plateaus"].push_back(to_json(each));
  return state.dump(2) + "\n";
}

}  // namespace

CheckpointWriter::File CheckpointWriter::file_of(const std::string& path,
                                                 std::vector<CheckpointTensor> stored,
                                                 const ParameterStore& store) {
  std::vector<formats::SafetensorsEntry> entries;
  std::vector<Tensor> tensors;
  for (CheckpointTensor& each : stored) {
    const Array& array = store.array(each.source);
    entries.push_back({.name = each.name, .dtype = array.dtype, .shape = array.shape});
    tensors.push_back({std::move(each), {}});
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
  std::vector<CheckpointTensor> weights = stored_weights(store),
                                optimizer = stored_optimizer(store);
  std::map<std::string, std::string> exchanged;
  for (CheckpointTensor& each : weights)
    if (const auto average = averages.find(each.name); average != averages.end()) {
      exchanged[average->second] = each.source;
      each.source = average->second;
    }
  for (CheckpointTensor& each : optimizer)
    if (const auto at = exchanged.find(each.name); at != exchanged.end()) each.source = at->second;
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
      auto part = part_of(each.stored.source);
      if (!part) continue;
      if (each.stored.start) *part = whole_part(starts_.at(each.stored.name));
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
        file.parts.write(each.stored.name, run.in_whole,
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
                        state_text(content_.state, seed_, temporary, checked_also_));
  sync_directory(temporary_);
  put_in_place(temporary, place);
  created_ = false;
  sync_directory(folder_);
  point_latest(folder_, content_.state.step);
  return place.string();
}

}  // namespace paddle::program
