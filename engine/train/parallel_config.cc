#include "train/parallel_config.h"

#include "base/text.h"

namespace paddle::train {

using config::Schema;
using config::Section;
using config::Spec;

partition::Mesh ParallelConfig::mesh() const {
  return partition::Mesh({{"data", static_cast<int>(data)}, {"tensor", static_cast<int>(tensor)}});
}

Schema parallel_schema() {
  constexpr double kMostRanks = 1024;
  Schema place;
  place.add(
      "match",
      Spec::list(Spec::text()).or_else(Spec::text()).required().doc("patterns of parameter names"));
  place.add("shard", Spec::map_of(Spec::word({"tensor"}))
                         .fallback("{}")
                         .doc("dim to axis, such as {1: tensor}; {}: whole on each rank"));
  Schema s;
  s.add("data", Spec::integer()
                    .at_least(1)
                    .at_most(kMostRanks)
                    .fallback("1")
                    .doc("ranks that share each batch"));
  s.add("tensor", Spec::integer()
                      .at_least(1)
                      .at_most(kMostRanks)
                      .fallback("1")
                      .doc("ranks that share each large weight"));
  s.add("sharding", Spec::integer().at_least(0).at_most(3).fallback("0").doc(
                        "what the ranks of data store in parts: 1 optimizer states, 2 also sums of "
                        "gradients, 3 also parameters"));
  s.add("place",
        Spec::list(Spec::map(place))
            .fallback("[]")
            .doc("placement of weights; the first match decides, others follow from the model"));
  return s;
}

ParallelConfig read_parallel(const Section& section, const SourceLocation& where,
                             config::Diagnostics& diagnostics) {
  ParallelConfig parallel;
  parallel.where = where;
  parallel.data = section.integer("data");
  parallel.tensor = section.integer("tensor");
  parallel.sharding = section.integer("sharding");
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
  if (!parallel.place.empty() && parallel.tensor == 1)
    diagnostics.add(ErrorCode::kConfig, "parallel.place splits over 'tensor', whose size is 1",
                    section.location("place"));
  return parallel;
}

void check_rank_count(const ParallelConfig& parallel, int ranks) {
  if (parallel.ranks() == ranks) return;
  std::string message =
      str("parallel: data ", parallel.data, " x tensor ", parallel.tensor, " is ", parallel.ranks(),
          parallel.ranks() == 1 ? " rank" : " ranks", ", the run has ", ranks);
  message += ranks == 1 ? str(": start it with paddle-launch -n ", parallel.ranks(),
                              ", or simulate it with --simulate ", parallel.ranks())
                        : str(": set the sizes so that their product is ", ranks);
  throw Error(ErrorCode::kConfig, message, parallel.where);
}

}  // namespace paddle::train
