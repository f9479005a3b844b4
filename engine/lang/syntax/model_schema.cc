#include "lang/syntax/model_schema.h"

namespace paddle::lang {
namespace {

using config::Schema;
using config::Spec;

Spec body() {
  return Spec::text().or_else(Spec::list(Spec::any()));  // a chain: a list of operations and blocks
}

Spec inputs() {
  return Spec::map_of(Spec::text())
      .doc("names and types: {image: \"float32[batch, 3, 224, 224]\"}");
}

Spec outputs() {
  return Spec::list(Spec::text())
      .or_else(Spec::text())
      .doc("names of values; default: those of the chain");
}

Schema function_schema() {
  Schema s;
  s.add("inputs", inputs());
  s.add("model", body().required().doc("the body: statements or a chain"));
  s.add("outputs", outputs());
  return s;
}

}  // namespace

Schema model_schema() {
  Schema s;
  s.add("name", Spec::text().doc("of the model; default: that of the file"));
  s.add("include", Spec::list(Spec::text())
                       .or_else(Spec::text())
                       .doc("model files whose blocks and params can be used"));
  s.add("params", Spec::map_of(Spec::any()).doc("values that a config or a variant may change"));
  s.add("variants",
        Spec::map_of(Spec::map_of(Spec::any())).doc("params by name: `model: FILE:NAME`"));
  s.add("inputs", inputs());
  s.add("blocks", Spec::map_of(body()).doc("signatures and bodies: \"residual(x, channels)\""));
  s.add("model", body().doc("the body: statements or a chain; a file without one is a library"));
  s.add("outputs", outputs());
  s.add("functions", Spec::map_of(Spec::map(function_schema()))
                         .doc("further entry functions, which share the weights of `model`"));
  s.add("sources", Spec::map_of(Spec::any())
                       .doc("language models: how keys and weights of published files are read"));
  return s;
}

}  // namespace paddle::lang
