#pragma once
// The keys of a model file as a schema: for editors and the reference. Bodies, signatures and types
// are texts to it; the parser checks them.

#include "config/schema.h"

namespace paddle::lang {

config::Schema model_schema();

}  // namespace paddle::lang
