// SPDX-License-Identifier: Apache-2.0
//
// When a manager's view is another one, and what it has.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Pod PodWithoutClaims(const std::string& name) {
  Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = name;
  pod.metadata.uid = "u-" + name;
  pod.spec.containers = {{"c", {}, ""}};
  return pod;
}

class ViewTest : public ManagerTest {
 protected:
  void Run(const std::string& name) {
    ASSERT_THAT(node_.manager().AdmitPod(PodWithoutClaims(name)), IsOk());
    ASSERT_THAT(node_.manager().PreparePod(PodUid{"u-" + name}), IsOk());
  }
};

TEST_F(ViewTest, HasWhatABlockingCallDid) {
  node_.Start(/*with_actuator=*/false);
  for (int i = 0; i < 20; ++i) {
    const std::string name = "p" + std::to_string(i);
    Run(name);
    const auto view = node_.manager().View();
    const auto info = view->PodInfoOf(PodUid{"u-" + name});
    ASSERT_THAT(info, IsOk());
    EXPECT_EQ(info->state, PodState::kReady);
    EXPECT_EQ(view->Node().pods, i + 1);
    EXPECT_EQ(view->LastEvent(), node_.manager().Events(0).back().sequence);
  }
}

TEST_F(ViewTest, IsTheSameWhileNothingHappens) {
  node_.Start(/*with_actuator=*/false);
  Run("p");
  // What the start and the pod left to do ends after a while.
  std::shared_ptr<const NodeView> view;
  ASSERT_TRUE(node_.WaitUntil("the node is quiet", [&] {
    view = node_.manager().View();
    for (int i = 0; i < 1'000 && view != node_.manager().View(); ++i) {
      view = node_.manager().View();
    }
    return view == node_.manager().View();
  }));
  Run("q");
  const auto next = node_.manager().View();
  EXPECT_NE(view, next);
  EXPECT_GT(next->Sequence(), view->Sequence());
  EXPECT_THAT(view->Pods(), SizeIs(1));
  EXPECT_THAT(next->Pods(), SizeIs(2));
}

TEST_F(ViewTest, AnObserverSeesWhatItHearsOf) {
  node_.Start(/*with_actuator=*/false);
  struct Looking : DeviceManagerObserver {
    void OnPod(const PodInfo& pod, bool gone) override {
      const auto info = manager->View()->PodInfoOf(pod.uid);
      ++heard;
      if (gone ? info.ok() : !info.ok() || info->state != pod.state) ++wrong;
    }
    DeviceManager* manager = nullptr;
    int heard = 0;
    int wrong = 0;
  } observer;
  observer.manager = &node_.manager();
  const auto observation = node_.manager().Observe(observer);
  Run("p");
  ASSERT_THAT(node_.manager().EndPod(PodUid{"u-p"}), IsOk());
  node_.RunAndWait([&] {
    EXPECT_GT(observer.heard, 1);
    EXPECT_EQ(observer.wrong, 0);
  });
}

// The manager's thread waits for another one that looks.
TEST_F(ViewTest, NeedsNoTurnOfTheManagersThread) {
  node_.Start(/*with_actuator=*/false);
  struct Asking : DeviceManagerObserver {
    void OnPod(const PodInfo& pod, bool gone) override {
      if (gone) return;
      std::thread other([&] {
        const auto info = manager->View()->PodInfoOf(pod.uid);
        ++looked;
        if (!info.ok() || info->state != pod.state) ++wrong;
      });
      other.join();
    }
    DeviceManager* manager = nullptr;
    std::atomic<int> looked = 0;
    std::atomic<int> wrong = 0;
  } observer;
  observer.manager = &node_.manager();
  const auto observation = node_.manager().Observe(observer);
  Run("p");
  EXPECT_GT(observer.looked, 0);
  EXPECT_EQ(observer.wrong, 0);
}

TEST_F(ViewTest, ACompletionSeesWhatItCompletes) {
  node_.Start(/*with_actuator=*/false);
  std::promise<absl::StatusOr<PodInfo>> seen;
  DeviceManager& manager = node_.manager();
  ASSERT_THAT(manager.AdmitPod(PodWithoutClaims("p")), IsOk());
  manager.StartPreparePod(PodUid{"u-p"}, [&](const absl::Status&) {
    seen.set_value(manager.View()->PodInfoOf(PodUid{"u-p"}));
  });
  EXPECT_THAT(seen.get_future().get(), IsOk());
}

TEST_F(ViewTest, OutlivesItsManager) {
  node_.Start(/*with_actuator=*/false);
  Run("p");
  const auto view = node_.manager().View();
  node_.Stop();
  EXPECT_THAT(view->Pods(), SizeIs(1));
  EXPECT_EQ(view->Node().pods_ready, 1);
  EXPECT_THAT(view->Devices(), IsEmpty());
}

TEST_F(ViewTest, IsTakenByManyThreadsWhilePodsComeAndGo) {
  node_.Start(/*with_actuator=*/false);
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (!over) {
        const auto view = node_.manager().View();
        EXPECT_GE(view->Sequence(), last);
        last = view->Sequence();
        EXPECT_EQ(view->Pods().size(),
                  static_cast<std::size_t>(view->Node().pods));
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    Run("p");
    EXPECT_THAT(node_.manager().EndPod(PodUid{"u-p"}), IsOk());
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(node_.manager().View()->Pods(), IsEmpty());
}

}  // namespace
}  // namespace devmgr
