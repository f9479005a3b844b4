#pragma once
// Everything: models, language models, training, operations. docs/guide/embedding.md shows each in
// use.
//
// The C++ interface needs the standard library that the library was built with (libstdc++ of g++ 12
// or newer); paddle_c.h is a plain C interface for prediction from any language.

#include "paddle/array.h"
#include "paddle/communicator.h"
#include "paddle/error.h"
#include "paddle/language_model.h"
#include "paddle/model.h"
#include "paddle/ops.h"
#include "paddle/trainer.h"
#include "paddle/version.h"
