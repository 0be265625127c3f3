// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_phases.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "support/mailbox.h"

namespace devmgr {
namespace {

class PodPhasesTest : public ::testing::Test {
 protected:
  void Publish(int priority) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.ns = kName.ns;
    pod->metadata.name = kName.name;
    pod->spec.priority = priority;
    ObjectSnapshot objects;
    objects.complete = true;
    objects.pods.insert_or_assign(kName, std::move(pod));
    objects_->Publish(std::move(objects));
  }
  std::shared_ptr<const Pod> Shown() const {
    return source_->Snapshot()->pods.at(kName);
  }

  const ObjectName kName{"default", "p"};
  const std::unique_ptr<MemoryObjectSource> objects_ =
      MemoryObjectSource::Create();
  const std::unique_ptr<PodPhaseSource> source_ =
      PodPhaseSource::Make(*objects_);
};

TEST_F(PodPhasesTest, APhaseIsThatOfThePodUntilItIsTakenBack) {
  Publish(1);
  const auto before = Shown();
  source_->SetPhase(kName, "Failed");
  EXPECT_EQ(source_->PhaseOf(kName), "Failed");
  EXPECT_EQ(Shown()->status.phase, "Failed");
  EXPECT_EQ(Shown()->spec.priority, 1);
  EXPECT_EQ(before->status.phase, "");
  source_->SetPhase(kName, "Succeeded");
  EXPECT_EQ(Shown()->status.phase, "Succeeded");
  source_->SetPhase(kName, "");
  EXPECT_EQ(source_->PhaseOf(kName), "");
  EXPECT_EQ(Shown(), before);
}

/// What does not change stays the same pointer, or counts as changed.
TEST_F(PodPhasesTest, APodIsTheSameAsLongAsItsManifestIs) {
  Publish(1);
  source_->SetPhase(kName, "Failed");
  const auto first = Shown();
  source_->SetPhase({"default", "other"}, "Failed");
  EXPECT_EQ(Shown(), first);
  EXPECT_EQ(source_->Snapshot(), source_->Snapshot());
  Publish(2);
  EXPECT_EQ(Shown()->spec.priority, 2);
  EXPECT_EQ(Shown()->status.phase, "Failed");
}

TEST_F(PodPhasesTest, APhaseMayBeThereBeforeThePod) {
  source_->SetPhase(kName, "Succeeded");
  EXPECT_TRUE(source_->Snapshot()->pods.empty());
  Publish(1);
  EXPECT_EQ(Shown()->status.phase, "Succeeded");
}

TEST_F(PodPhasesTest, TheSubscriberHearsOfObjectsAndOfPhases) {
  Mailbox<std::string> phases;
  source_->Subscribe([&] {
    const auto objects = source_->Snapshot();
    const auto pod = objects->pods.find(kName);
    phases.Put(pod == objects->pods.end() ? "none" : pod->second->status.phase);
  });
  Publish(1);
  EXPECT_EQ(phases.Take(), "");
  source_->SetPhase(kName, "Failed");
  EXPECT_EQ(phases.Take(), "Failed");
  source_->Unsubscribe();
  source_->SetPhase(kName, "");
  Mailbox<int> others;
  source_->Subscribe([&] { others.Put(0); });
  source_->SetPhase(kName, "Failed");
  EXPECT_TRUE(others.Take().has_value());
  EXPECT_EQ(phases.size(), 0u);
  source_->Unsubscribe();
}

TEST_F(PodPhasesTest, IsKnownByTheNameOfItsSource) {
  EXPECT_EQ(source_->Describe(), objects_->Describe());
}

}  // namespace
}  // namespace devmgr
