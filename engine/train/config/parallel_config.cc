#include "train/config/parallel_config.h"

#include <algorithm>

#include "base/byte_size.h"
#include "base/text.h"
#include "comm/transport_kind.h"
#include "config/kind_keys.h"
#include "ops/core/op.h"
#include "partition/factor_text.h"
#include "train/config/memory_key.h"

namespace paddle::train {

using config::Section;

partition::Mesh ParallelConfig::mesh() const {
  std::vector<partition::MeshAxis> axes = {{"data", static_cast<int>(data)},
                                           {"tensor", static_cast<int>(tensor)}};
  if (pipeline > 1) axes.insert(axes.begin(), {"pipeline", static_cast<int>(pipeline)});
  partition::Mesh mesh(std::move(axes));
  if (expert > 1) mesh.add_view("expert", "data", static_cast<int>(expert));
  return mesh;
}

namespace {

void read_pipeline(const Section& section, ParallelConfig& parallel,
                   config::Diagnostics& diagnostics) {
  parallel.pipeline = section.integer("pipeline");
  parallel.schedule = partition::parse_schedule(section.text("schedule"));
  if (section.has("micro_batches")) parallel.micro_batches = section.integer("micro_batches");
  const bool interleaved = parallel.schedule == partition::Schedule::kInterleaved;
  parallel.chunks = section.has("chunks") ? section.integer("chunks") : interleaved ? 2 : 1;
  if (parallel.chunks > 1 && !interleaved)
    diagnostics.add(ErrorCode::kConfig,
                    str("parallel.chunks: only 'schedule: interleaved' has several stages a rank, "
                        "the schedule is ",
                        section.text("schedule")),
                    section.location("chunks"));
  const bool is_default = parallel.schedule == ParallelConfig().schedule;
  if (parallel.pipeline == 1 && (!is_default || section.has("chunks")))
    diagnostics.add(ErrorCode::kConfig, "parallel.schedule orders a pipeline, whose size is 1",
                    section.location("schedule"));
}

void read_recompute(const Section& section, ParallelConfig& parallel,
                    config::Diagnostics& diagnostics) {
  const config::Node& node = section.at("recompute");
  const SourceLocation where = section.location("recompute");
  if (node.entries.empty()) {
    if (section.text("recompute") == "full") parallel.recompute.emplace();
  } else {
    const Section map(node);
    parallel.recompute.emplace();
    if (map.has("layers")) parallel.recompute->layers = map.texts("layers");
    if (map.has("budget")) {
      const auto size = parse_byte_size(map.at("budget").text);
      if (!size)
        diagnostics.add(ErrorCode::kConfig,
                        "parallel.recompute.budget: expected an amount of memory such as 8 GiB, "
                        "found '" +
                            map.at("budget").text + "'",
                        map.location("budget"));
      parallel.recompute_budget = size.value_or(0);
    }
    if (!map.has("layers") && !map.has("budget"))
      diagnostics.add(ErrorCode::kConfig,
                      "parallel.recompute: expected none, full, layers or a budget", where);
  }
}

void read_buckets(const Section& section, ParallelConfig& parallel,
                  config::Diagnostics& diagnostics) {
  constexpr uint64_t kMax = uint64_t{1} << 40;
  if (const auto size = read_memory(section, "parallel", "bucket", kMax, "4 MiB", diagnostics))
    parallel.bucket_bytes = static_cast<int64_t>(*size);
  const std::string overlap = section.text("overlap");
  if (overlap != "auto") parallel.overlap = overlap == "always";
  parallel.sums_each = section.text("reduce") == "each";
  if (section.text("collectives") == "ring") parallel.collectives = comm::CollectiveForm::kRing;
  if (!section.has("transport")) return;
  parallel.transport = config::read_choice(comm::transport_kinds(), section.at("transport"),
                                           "parallel.transport", diagnostics);
}

void read_rules(const Section& section, ParallelConfig& parallel,
                config::Diagnostics& diagnostics) {
  for (const config::Entry& entry : section.at("rules").entries) {
    const auto reject = [&](const std::string& why, const SourceLocation& at) {
      diagnostics.add(ErrorCode::kConfig, "parallel.rules: " + why, at);
    };
    if (!find_op(entry.key.text)) {
      reject("there is no operation '" + entry.key.text + "'" +
                 did_you_mean(entry.key.text, op_names()),
             entry.key.location());
      continue;
    }
    try {
      parallel.rules.push_back({std::string(get_op(entry.key.text).name()),
                                partition::parse_rule(entry.value.text), entry.key.location()});
    } catch (const Error& e) {
      reject(e.message(), entry.value.location());
    }
  }
}

/// Keys that have no effect on one rank.
void check_has_ranks(const Section& section, const ParallelConfig& parallel,
                     config::Diagnostics& diagnostics) {
  const ParallelConfig defaults;
  if (parallel.sharding > 0 && parallel.data == 1)
    diagnostics.add(ErrorCode::kConfig,
                    "parallel.sharding shards over 'data', whose size is 1: set it to 0",
                    section.location("sharding"));
  if (parallel.ranks() > 1) return;
  const auto check = [&](const char* key, bool is_stated, const std::string& without) {
    if (is_stated)
      diagnostics.add(ErrorCode::kConfig,
                      str("parallel.", key, " has no effect on one rank: ", without),
                      section.location(key));
  };
  check("bucket", parallel.bucket_bytes != defaults.bucket_bytes,
        "leave it out, or set it to 4 MiB");
  check("reduce", parallel.sums_each, "set it to update");
  check("overlap", parallel.overlap != defaults.overlap, "set it to auto");
  check("collectives", parallel.collectives != defaults.collectives, "set it to tree");
  check("transport", !parallel.transport.name.empty(), "leave it out, or set it to null");
}

}  // namespace

int64_t micro_batches(const ParallelConfig& parallel, int64_t accumulate, int64_t batch,
                      const SourceLocation& where, config::Diagnostics& diagnostics) {
  const auto reject = [&](const std::string& message) {
    diagnostics.add(ErrorCode::kConfig, "parallel.micro_batches: " + message,
                    parallel.where.line > 0 ? parallel.where : where);
  };
  int64_t count = parallel.micro_batches;
  if (count > 0 && accumulate > 1 && accumulate != count)
    reject(str("is ", count, ", train.accumulate is ", accumulate,
               "; both are the number of micro-batches, leave one of them out"));
  if (count == 0) count = accumulate > 1 ? accumulate : parallel.pipeline;
  const bool states = parallel.micro_batches > 0 || parallel.pipeline > 1;
  if (states && batch < count)
    reject(str("a batch of ", batch, " samples cannot have ", count, " micro-batches"));
  if (parallel.schedule == partition::Schedule::kInterleaved && count % parallel.pipeline != 0)
    reject(str("'schedule: interleaved' needs a multiple of the ", parallel.pipeline,
               " ranks of pipeline, found ", count));
  return count;
}

ParallelConfig read_parallel(const Section& section, const SourceLocation& where,
                             config::Diagnostics& diagnostics) {
  ParallelConfig parallel;
  parallel.where = where;
  parallel.data = section.integer("data");
  parallel.tensor = section.integer("tensor");
  parallel.sharding = section.integer("sharding");
  parallel.expert = section.integer("expert");
  if (parallel.data % parallel.expert != 0) {
    diagnostics.add(ErrorCode::kConfig,
                    str("parallel.expert: ", parallel.expert, " must divide the ", parallel.data,
                        parallel.data == 1 ? " rank" : " ranks", " of data"),
                    section.location("expert"));
    parallel.expert = 1;
  }
  parallel.sequence = section.boolean("sequence");
  if (parallel.sequence && parallel.tensor == 1)
    diagnostics.add(ErrorCode::kConfig, "parallel.sequence splits over 'tensor', whose size is 1",
                    section.location("sequence"));
  read_pipeline(section, parallel, diagnostics);
  read_recompute(section, parallel, diagnostics);
  for (const Section& s : section.sections("place")) {
    partition::PlaceRule rule;
    rule.match = s.texts("match");
    rule.where = s.location("match");
    for (const config::Entry& entry : s.at("shard").entries) {
      const auto dim = entry.key.try_int();
      if (dim)
        rule.shard[*dim] = entry.value.text;
      else
        diagnostics.add(
            ErrorCode::kConfig,
            "parallel.place: expected a dim such as 0 or 1, found '" + entry.key.text + "'",
            entry.key.location());
    }
    parallel.place.push_back(std::move(rule));
  }
  read_buckets(section, parallel, diagnostics);
  read_rules(section, parallel, diagnostics);
  if (!parallel.place.empty() && parallel.tensor == 1)
    diagnostics.add(ErrorCode::kConfig, "parallel.place splits over 'tensor', whose size is 1",
                    section.location("place"));
  check_has_ranks(section, parallel, diagnostics);
  return parallel;
}

void check_rank_count(const ParallelConfig& parallel, int ranks) {
  if (parallel.ranks() == ranks) return;
  std::string message = str("parallel: ", parallel.mesh().text(), " is ", parallel.ranks(),
                            parallel.ranks() == 1 ? " rank" : " ranks", ", the run has ", ranks);
  message += ranks == 1 ? str(": start it with paddle-launch -n ", parallel.ranks(),
                              ", or simulate it with --simulate ", parallel.ranks())
                        : str(": set the sizes so that their product is ", ranks);
  throw Error(ErrorCode::kConfig, message, parallel.where);
}

}  // namespace paddle::train
