// Registries: additions are all or nothing, name both places of a duplicate, and are safe from
// several threads.

#include "base/registry.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace paddle {
namespace {

struct Thing {
  std::string name;
  int value = 0;
};

using Names = std::vector<std::string>;

TEST(Registry, KeepsTheOrderOfRegistration) {
  Registry<Thing> things("thing", {{"b", 1}, {"a", 2}});
  things.add({{"c", 3}}, {"plugin.so"});
  EXPECT_EQ(things.names(), (Names{"b", "a", "c"}));
  ASSERT_NE(things.find("a"), nullptr);
  EXPECT_EQ(things.find("a")->value, 2);
  EXPECT_EQ(things.find("d"), nullptr);
}

TEST(Registry, AddsAllOrNothing) {
  Registry<Thing> things("thing", {{"a", 1}});
  things.add({{"b", 2}}, {"one.so", 7});
  const uint64_t version = things.version();
  const auto message_of = [&](std::vector<Thing> added) -> std::string {
    try {
      things.add(std::move(added), {"two.so", 3, 5});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of({{"c", 3}, {"a", 4}}),
            "two.so:3:5: thing 'a' is already registered (built in)");
  EXPECT_EQ(message_of({{"c", 3}, {"b", 4}}),
            "two.so:3:5: thing 'b' is already registered by one.so:7");
  EXPECT_EQ(message_of({{"c", 3}, {"c", 4}}),
            "two.so:3:5: thing 'c' is already registered by two.so:3:5");
  EXPECT_EQ(message_of({{"c", 3}, {"", 4}}), "two.so:3:5: thing without a name");
  EXPECT_EQ(things.names(), (Names{"a", "b"}));
  EXPECT_EQ(things.version(), version);
  things.add({{"c", 3}}, {});
  EXPECT_GT(things.version(), version);
}

TEST(Registry, WhatItReturnedOutlivesARemoval) {
  Registry<Thing> things("thing", {{"a", 1}, {"b", 2}});
  const auto kept = things.find("a");
  things.remove({"a", "unknown"});
  EXPECT_EQ(things.names(), (Names{"b"}));
  EXPECT_EQ(kept->value, 1);
  things.add({{"a", 5}}, {});
  EXPECT_EQ(things.find("a")->value, 5);
}

TEST(Registry, IsSafeFromSeveralThreads) {
  constexpr int kThreads = 4, kEach = 200;
  Registry<Thing> things("thing", {{"first", 0}});
  std::atomic<int> duplicates = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        things.add({{str(t, "-", i), i}}, {});
        try {
          things.add({{str("shared-", i), t}, {str(t, "-twin-", i), t}}, {});
        } catch (const Error&) {
          ++duplicates;
        }
        EXPECT_NE(things.find("first"), nullptr);
        EXPECT_EQ(things.find(str(t, "-", i))->value, i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(duplicates, (kThreads - 1) * kEach);
  EXPECT_EQ(things.all().size(), size_t{1 + kThreads * kEach + 2 * kEach});
}

}  // namespace
}  // namespace paddle
