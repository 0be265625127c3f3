// SPDX-License-Identifier: Apache-2.0
#include <devmgr/host.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "source/manifest_directory.h"

namespace devmgr {
namespace {

using source::SourceListener;

ObjectSnapshot OnePod(const std::string& name) {
  ObjectSnapshot snapshot;
  auto pod = std::make_shared<Pod>();
  pod->metadata.ns = "default";
  pod->metadata.name = name;
  snapshot.pods.emplace(pod->metadata.FullName(), pod);
  snapshot.complete = true;
  return snapshot;
}

TEST(MemoryObjectSourceTest, IsEmptyAndIncompleteAtFirst) {
  const auto source = MemoryObjectSource::Create();
  ASSERT_NE(source->Snapshot(), nullptr);
  EXPECT_FALSE(source->Snapshot()->complete);
  EXPECT_TRUE(source->Snapshot()->pods.empty());
  EXPECT_EQ(source->Describe(), "memory");
}

TEST(MemoryObjectSourceTest, ServesWhatWasPublishedAtOnce) {
  const auto source = MemoryObjectSource::Create();
  source->Publish(OnePod("a"));
  const auto first = source->Snapshot();
  EXPECT_EQ(SourceListener::PodNames(*first), std::vector<std::string>{"a"});
  source->Publish(OnePod("b"));
  EXPECT_EQ(SourceListener::PodNames(*source->Snapshot()),
            std::vector<std::string>{"b"});
  EXPECT_EQ(SourceListener::PodNames(*first), std::vector<std::string>{"a"});
}

TEST(MemoryObjectSourceTest, TellsTheSubscriberOnAThreadOfItsOwn) {
  const auto source = MemoryObjectSource::Create();
  std::promise<std::thread::id> told;
  source->Subscribe([&] { told.set_value(std::this_thread::get_id()); });
  source->Publish(OnePod("a"));
  EXPECT_NE(told.get_future().get(), std::this_thread::get_id());
  source->Unsubscribe();
}

TEST(MemoryObjectSourceTest, NewSubscriberReplacesTheOld) {
  const auto source = MemoryObjectSource::Create();
  bool old_was_told = false;
  source->Subscribe([&] { old_was_told = true; });
  SourceListener listener(*source);
  source->Publish(OnePod("a"));
  listener.Await([&](const ObjectSnapshot&) { return listener.changes() > 0; });
  EXPECT_FALSE(old_was_told);
}

TEST(MemoryObjectSourceTest, UnsubscribeWaitsForTheCallThatRuns) {
  const auto source = MemoryObjectSource::Create();
  std::promise<void> entered;
  std::promise<void> leave;
  int calls = 0;
  bool left = false;
  source->Subscribe([&] {
    if (++calls > 1) return;
    entered.set_value();
    leave.get_future().wait();
    left = true;
  });
  source->Publish(OnePod("a"));
  entered.get_future().wait();
  // Publishing does not wait for the subscriber.
  source->Publish(OnePod("b"));
  std::thread unsubscriber([&] {
    source->Unsubscribe();
    EXPECT_TRUE(left);
  });
  leave.set_value();
  unsubscriber.join();
}

TEST(MemoryObjectSourceTest, WorksWithoutSubscriber) {
  const auto source = MemoryObjectSource::Create();
  source->Unsubscribe();
  source->Publish(OnePod("a"));
  source->Unsubscribe();
}

}  // namespace
}  // namespace devmgr
