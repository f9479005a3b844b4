#include "tune/tune_section.h"

#include "base/text.h"
#include "config/overrides.h"
#include "config/sections.h"

namespace paddle::tune {

using config::Schema;
using config::Section;
using config::Spec;

Schema tune_schema() {
  Schema s;
  s.add("what", Spec::list(Spec::word({"threads", "loader", "kernels", "codegen", "recompute",
                                       "precision", "batch", "parallel"}))
                    .or_else(Spec::word({"threads", "loader", "kernels", "codegen", "recompute",
                                         "precision", "batch", "parallel"}))
                    .doc("dimensions to try; default: those that keep the results"));
  s.add("time_limit", Spec::duration().at_least(0).at_most(1e7).doc(
                          str("for the search: 90, 30m, 1h30m (default: ", kTimeLimit, "s)")));
  s.add("loss_tolerance",
        Spec::real().at_least(0).at_most(1).doc(str(
            "precision: how much the mean loss of steps 41 to 50 may move, as a share (default: ",
            kLossTolerance, ")")));
  s.add("output", Spec::path().doc("folder of the results; default: tuned/<name>"));
  s.add("cluster", Spec::path().doc("parallel: the cluster that is planned for"));
  s.add("fix", Spec::list(Spec::text())
                   .or_else(Spec::text())
                   .doc("parallel: only such strategies, as tensor=8"));
  s.add("plans", Spec::integer().at_least(1).at_most(100'000).doc(
                     str("parallel: plans to print (default: ", kPlans, ")")));
  return s;
}

void register_section() {
  config::register_section({.name = "tune",
                            .owner = "paddle-tune",
                            .doc = "what paddle-tune tries",
                            .schema = tune_schema});
}

TuneSection read_tune_section(const config::Node& document) {
  TuneSection out;
  const config::Node* const node = document.find("tune");
  if (!node || node->is_null()) return out;
  const Section s(*node);
  if (s.has("what")) out.what = s.texts("what");
  if (s.has("time_limit")) out.time_limit = s.seconds("time_limit");
  if (s.has("loss_tolerance")) out.loss_tolerance = s.real("loss_tolerance");
  if (s.has("output")) out.output = config::resolve_path(s.at("output"));
  if (s.has("cluster")) out.cluster = config::resolve_path(s.at("cluster"));
  if (s.has("fix")) out.fix = s.texts("fix");
  if (s.has("plans")) out.plans = s.integer("plans");
  return out;
}

}  // namespace paddle::tune
