// paddle-score METRIC PREDICTIONS REFERENCES…: scores of predictions in files.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "metrics/detection.h"
#include "metrics/text_scores.h"
#include "train/records/metrics_log.h"

namespace {

using namespace paddle;
using nlohmann::json;

std::vector<std::string> lines_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  std::vector<std::string> out;
  std::string_view text = file->view();
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

/// Files of the same number of lines as `texts`.
std::vector<std::vector<std::string>> references_of(const std::vector<std::string>& paths,
                                                    const std::string& predictions, size_t count) {
  std::vector<std::vector<std::string>> out;
  for (const std::string& path : paths) {
    out.push_back(lines_of(path));
    if (out.back().size() != count)
      fail(ErrorCode::kData, path, ": has ", out.back().size(), " lines, ", predictions, " has ",
           count);
  }
  return out;
}

nlohmann::ordered_json text_score(const std::string& metric, const std::string& predictions,
                                  const std::vector<std::string>& paths) {
  const std::vector<std::string> texts = lines_of(predictions);
  const auto references = references_of(paths, predictions, texts.size());
  nlohmann::ordered_json out = {{"metric", metric}, {"samples", texts.size()}};
  if (metric == "bleu") {
    const metrics::BleuScore score = metrics::bleu(texts, references);
    out["bleu"] = train::number_or_null<nlohmann::ordered_json>(score.score);
    out["precisions"] = score.precisions;
    out["brevity_penalty"] = score.brevity_penalty;
    out["length"] = score.length;
    out["reference_length"] = score.reference_length;
    out["signature"] = metrics::bleu_signature(references.size());
    return out;
  }
  if (references.size() != 1)
    fail(ErrorCode::kUsage, metric, ": one file of references is expected, found ",
         references.size());
  const metrics::ErrorRate rate = metric == "wer" ? metrics::word_errors(texts, references[0])
                                                  : metrics::character_errors(texts, references[0]);
  out[metric] = train::number_or_null<nlohmann::ordered_json>(rate.rate());
  out["edits"] = rate.edits;
  out["reference_length"] = rate.length;
  return out;
}

json read_json(const std::string& path) {
  const auto file = MappedFile::open(path);
  constexpr int kMaxDepth = 16;
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth < kMaxDepth; };
  json out = json::parse(file->view().begin(), file->view().end(), shallow, false);
  if (out.is_discarded()) fail(ErrorCode::kData, path, ": is not JSON");
  return out;
}

std::array<double, 4> box_of(const json& each, const std::string& path) {
  const auto box = each.at("bbox").get<std::vector<double>>();
  if (box.size() != 4 ||
      !std::all_of(box.begin(), box.end(), [](double x) { return std::isfinite(x); }))
    fail(ErrorCode::kData, path, ": a bbox that is not four numbers: ", each.at("bbox").dump());
  return {box[0], box[1], box[2], box[3]};
}

nlohmann::ordered_json coco_score(const std::string& predictions, const std::string& references) {
  const json truth = read_json(references), found = read_json(predictions);
  metrics::DetectionEvaluator evaluator;
  std::map<int64_t, std::string> names;
  size_t images = 0;
  std::string path = references;
  try {
    std::set<int64_t> known;
    for (const json& each : truth.at("images")) known.insert(each.at("id").get<int64_t>());
    images = known.size();
    for (const json& each : truth.at("categories"))
      names[each.at("id").get<int64_t>()] = each.at("name").get<std::string>();
    for (const json& each : truth.at("annotations")) {
      const auto box = box_of(each, path);
      evaluator.add(
          each.at("image_id").get<int64_t>(), each.at("category_id").get<int64_t>(),
          metrics::LabeledBox{box[0], box[1], box[2], box[3], each.value("area", box[2] * box[3]),
                              each.value("iscrowd", 0) != 0});
    }
    path = predictions;
    for (const json& each : found) {
      const auto image = each.at("image_id").get<int64_t>(),
                 category = each.at("category_id").get<int64_t>();
      if (!known.contains(image))
        fail(ErrorCode::kData, path, ": image ", image, " is not one of ", references);
      if (!names.contains(category))
        fail(ErrorCode::kData, path, ": category ", category, " is not one of ", references);
      const auto box = box_of(each, path);
      const auto score = each.at("score").get<double>();
      evaluator.add(image, category, metrics::DetectedBox{box[0], box[1], box[2], box[3], score});
    }
  } catch (const json::exception& e) {
    fail(ErrorCode::kData, path, ": is not of COCO's form: ", e.what());
  }
  const metrics::DetectionScore s = evaluator.result();
  nlohmann::ordered_json out = {{"metric", "coco"}, {"samples", images}};
  const std::pair<const char*, double> values[] = {{"map", s.map},
                                                   {"map50", s.map50},
                                                   {"map75", s.map75},
                                                   {"map_small", s.map_small},
                                                   {"map_medium", s.map_medium},
                                                   {"map_large", s.map_large},
                                                   {"recall_1", s.recall_1},
                                                   {"recall_10", s.recall_10},
                                                   {"recall_100", s.recall_100},
                                                   {"recall_small", s.recall_small},
                                                   {"recall_medium", s.recall_medium},
                                                   {"recall_large", s.recall_large}};
  // Without such objects a score is not defined.
  const auto defined = [](double x) {
    return x < 0 ? nlohmann::ordered_json() : train::number_or_null<nlohmann::ordered_json>(x);
  };
  for (const auto& [name, value] : values) out[name] = defined(value);
  for (const auto& [id, name] : names) {
    const auto it = s.by_category.find(id);
    out["categories"][name] = it == s.by_category.end() ? nullptr : defined(it->second);
  }
  return out;
}

int run_score(int argc, char** argv) {
  cli::App app{"Scores predictions in files against references."};
  app.footer(
      "bleu, wer and cer take text files, a line for each sample; bleu takes several files of "
      "references. coco takes the JSON of detections and that of annotations.");
  std::string metric, predictions;
  std::vector<std::string> references;
  bool as_json = false;
  app.add_option("METRIC", metric, "bleu, wer, cer or coco")->required();
  app.add_option("PREDICTIONS", predictions, "what a model gave")->required();
  app.add_option("REFERENCES", references, "what is right")->required();
  app.add_flag("--json", as_json, "accepted for scripts: the output is JSON in any case");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const std::vector<std::string> known = {"bleu", "wer", "cer", "coco"};
  if (std::find(known.begin(), known.end(), metric) == known.end())
    fail(ErrorCode::kUsage, "there is no metric '", metric, "'", did_you_mean(metric, known),
         "; expected ", join(known, ", "));
  if (metric == "coco" && references.size() != 1)
    fail(ErrorCode::kUsage, "coco: one file of annotations is expected, found ", references.size());
  const nlohmann::ordered_json out = metric == "coco" ? coco_score(predictions, references[0])
                                                      : text_score(metric, predictions, references);
  cli::print(out.dump() + "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int score_command(int argc, char** argv) {
  return run_tool([&] { return run_score(argc, argv); });
}

}  // namespace paddle::cli
