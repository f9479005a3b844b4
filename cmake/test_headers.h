// The headers of tests, compiled once.
#include "common_headers.h"

#include <gtest/gtest.h>
