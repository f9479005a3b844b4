#include "ps_publish.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "common.h"
#include "program/model_store.h"
#include "sections/sections.h"
#include "train/config/run_config.h"
#include "train/tables/stored_tables.h"
#include "train/tables/table_policy.h"

namespace paddle::cli {

namespace {

using nlohmann::ordered_json;

/// The policies of the run that wrote a checkpoint.
std::vector<train::TablePolicy> policies_of(const std::string& checkpoint) {
  const std::string config =
      (std::filesystem::path(checkpoint) / "inference" / "config.yaml").string();
  if (!file_exists(config)) return {};
  return train::read_config(config, {}).table_policies;
}

}  // namespace

PsPublish::PsPublish(App& app)
    : publish_(app.add_subcommand("publish", "a version of a checkpoint for serving")),
      rollback_(app.add_subcommand("rollback", "make another version of a store the current one")) {
  publish_
      ->add_option("MODEL", model_, "the folder of a run (its newest checkpoint) or a checkpoint")
      ->required();
  publish_->add_option("--to", store_, "folder of the versions")->required();
  publish_->add_flag("--base", whole_,
                     "write all rows, not those that differ from the current version");
  base_score_ =
      publish_->add_option("--base-score", base_least_, "least score of the rows of a base");
  delta_score_ = publish_->add_option("--delta-score", delta_least_,
                                      "least score of the changed rows of a delta");
  delta_days_ = publish_
                    ->add_option("--delta-days", days_,
                                 "days since the last use of the rows of a delta, at most")
                    ->check(in_range(int64_t{0}, int64_t{1} << 20));
  publish_
      ->add_option("--dtype", dtype_,
                   "type of the rows: float32 (default), float16, bfloat16, or int8 with one scale "
                   "a row")
      ->check(one_dtype_of({"float32", "float16", "bfloat16", "int8"}));
  publish_->add_option("--keep", rules_.keep, "versions that stay in the store (default: 16)")
      ->check(kPositive);
  rollback_->add_option("STORE", store_, "folder of the versions")->required();
  rollback_->add_option("VERSION", version_, "the name of one of them")->required();
  for (App* command : {publish_, rollback_})
    command->add_flag("--json", json_, "print one JSON object");
}

bool PsPublish::parsed() const { return publish_->parsed() || rollback_->parsed(); }

int PsPublish::run() { return publish_->parsed() ? publish() : rollback(); }

int PsPublish::publish() {
  register_sections();
  if (base_score_->count() > 0) rules_.base_score = base_least_;
  if (delta_score_->count() > 0) rules_.delta_score = delta_least_;
  if (delta_days_->count() > 0) rules_.delta_days = days_;
  rules_.dtype = *parse_dtype(dtype_);
  const std::string checkpoint = train::table_source(model_);
  const auto version = train::publish(checkpoint, store_, whole_, rules_, policies_of(checkpoint));
  if (!version)
    fail(ErrorCode::kUsage, store_, ": has a version of the step of ", checkpoint, " already");
  if (json_)
    print(ordered_json{{"version", version->name},
                       {"kind", version->is_base ? "base" : "delta"},
                       {"rows", version->rows},
                       {"removed", version->removed},
                       {"bytes", version->bytes}}
              .dump() +
          "\n");
  else
    print_line(str("version ", version->name, ": ", version->is_base ? "a base of " : "a delta of ",
                   version->rows, " rows, ", human_bytes(version->bytes), "; ", version->removed,
                   " removed"));
  return 0;
}

int PsPublish::rollback() const {
  program::set_current_version(store_, version_);
  if (json_)
    print(ordered_json{{"version", version_}}.dump() + "\n");
  else
    print_line(str(store_, ": version ", version_, " is the current one"));
  return 0;
}

}  // namespace paddle::cli
