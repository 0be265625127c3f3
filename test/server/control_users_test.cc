// SPDX-License-Identifier: Apache-2.0
//
// Which users may connect to the control service, and what each may call.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "common/status.h"
#include "server/control_fixture.h"
#include "support/as_nobody.h"
#include "support/wanted_text.h"

namespace devmgr {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ControlUsersTest = ControlServiceTest;

/// This thread is another user while it lives; other threads are not.
class OtherUser {
 public:
  explicit OtherUser(uid_t uid) { Become(uid); }
  ~OtherUser() { Become(0); }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  static void Become(uid_t uid) {
    if (::syscall(SYS_setresuid, -1, uid, -1) != 0) std::abort();
  }
};

TEST_F(ControlUsersTest, OnlyControlUsersMayConnectBesidesTheOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const auto can_connect = [this](uid_t uid) {
    const OtherUser user(uid);
    return rpc::Dial(*runtime_, endpoint_, [] {}).status().code();
  };
  Serve();
  EXPECT_EQ(can_connect(kNobody), StatusCode::kPermissionDenied);
  Serve({kNobody, 1234});
  EXPECT_EQ(can_connect(kNobody), StatusCode::kOk);
  EXPECT_EQ(can_connect(1234), StatusCode::kOk);
  EXPECT_EQ(can_connect(1235), StatusCode::kPermissionDenied);
  struct stat file {};
  ASSERT_EQ(stat(endpoint_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0707, 0600u);
}

TEST_F(ControlUsersTest, ControlUsersMayControlAndLookButNotMaintain) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  Serve({kNobody});
  std::unique_ptr<rpc::Connection> connection;
  {
    const OtherUser user(kNobody);
    connection = Dial();
  }
  ASSERT_NE(connection, nullptr);
  const std::string control = kController;
  const std::string inspect = "/devmgr.inspection.v1.Inspector/";
  const auto want = WantRequest(WantedPodText("p", "u-p"));
  EXPECT_THAT(
      Call<cpb::WantPodResponse>(*connection, control + "WantPod", want),
      IsOk());
  EXPECT_THAT(Decisions(), ElementsAre(HasSubstr("by uid 65534, pid ")));
  EXPECT_THAT(Call<ipb::PodsResponse>(*connection, inspect + "Pods",
                                      ipb::PodsRequest()),
              IsOk());
  ipb::FsckRequest fsck;
  EXPECT_THAT(Call<ipb::FsckReport>(*connection, inspect + "Fsck", fsck),
              IsOk());
  fsck.set_repair(true);
  const auto repair =
      Call<ipb::FsckReport>(*connection, inspect + "Fsck", fsck);
  EXPECT_EQ(repair.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(repair.status()),
              AllOf(HasSubstr("uid 65534, pid "),
                    HasSubstr("may not call Fsck: it is for root and the "
                              "daemon's user (uid 0) only, and not for "
                              "controlUsers")));
  for (const char* method :
       {"ForceReleaseClaim", "HandOverResource", "ConfirmSource", "FreeHolder",
        "RecheckDevices", "SetAuthority", "PreparePod", "ReleasePod",
        "ReportRuntime", "WaitForRuntimeLook"}) {
    EXPECT_EQ(Call<ipb::PodsResponse>(*connection, inspect + method,
                                      ipb::PodsRequest())
                  .status()
                  .code(),
              StatusCode::kPermissionDenied)
        << method;
  }
  for (const char* method : {"Alignment",      "BeforeContainerStart",
                             "Changes",        "Claims",
                             "Debts",          "DeviceClasses",
                             "DeviceHolders",  "Devices",
                             "Events",         "FindPod",
                             "ForeignHolders", "History",
                             "Node",           "Numa",
                             "Plugins",        "PodDevicesOf",
                             "Pods",           "Resolve",
                             "Resources",      "Slices",
                             "StateAt",        "WaitForChange"}) {
    EXPECT_NE(Call<ipb::PodsResponse>(*connection, inspect + method,
                                      ipb::PodsRequest())
                  .status()
                  .code(),
              StatusCode::kPermissionDenied)
        << method;
  }
  // Nor may they say which drivers connect, nor delete what one has published.
  EXPECT_EQ(Call<cpb::DriverKubeconfigResponse>(*connection,
                                                control + "DriverKubeconfig",
                                                cpb::DriverKubeconfigRequest())
                .status()
                .code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(
      Call<cpb::DeleteSlicesResponse>(*connection, control + "DeleteSlices",
                                      cpb::DeleteSlicesRequest())
          .status()
          .code(),
      StatusCode::kPermissionDenied);
  EXPECT_THAT(Decisions(), SizeIs(1));
}

// An administrator may have opened the socket to more users.
TEST_F(ControlUsersTest, OtherUsersMayOnlyLook) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be other users";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  Serve();
  ASSERT_EQ(::chmod(endpoint_.c_str(), 0666), 0);
  std::unique_ptr<rpc::Connection> connection;
  {
    const OtherUser user(kNobody);
    connection = Dial();
  }
  ASSERT_NE(connection, nullptr);
  const std::string control = kController;
  const auto want = WantRequest(WantedPodText("p", "u-p"));
  const auto wanted =
      Call<cpb::WantPodResponse>(*connection, control + "WantPod", want);
  EXPECT_EQ(wanted.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(wanted.status()),
              AllOf(HasSubstr("uid 65534, pid "),
                    HasSubstr("may not call WantPod: its user is neither root "
                              "nor the daemon's (uid 0), nor among "
                              "controlUsers")));
  EXPECT_THAT(log_.Take().value_or(""),
              AllOf(HasSubstr("inspection socket: uid 65534, pid "),
                    HasSubstr("may not call WantPod")));
  for (const char* method : {"UnwantPod", "BeforeContainerStart"}) {
    EXPECT_EQ(Call<cpb::UnwantPodResponse>(*connection, control + method,
                                           cpb::UnwantPodRequest())
                  .status()
                  .code(),
              StatusCode::kPermissionDenied)
        << method;
  }
  EXPECT_EQ(Call<ipb::PodDevices>(*connection, control + "PodDevices",
                                  cpb::PodDevicesRequest())
                .status()
                .code(),
            StatusCode::kUnavailable);
  EXPECT_THAT(Decisions(), IsEmpty());
}

TEST_F(ControlUsersTest, SaysWhichOptionNeedsAccessControlLists) {
  if (::mount("ramfs", folder_.path().c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "nothing can be mounted here";
  }
  ControlOptions control;
  control.wanted = wanted_.get();
  control.users = {1234};
  const auto server =
      InspectionServer::Start(manager_, endpoint_, nullptr, control);
  ::umount2(folder_.path().c_str(), MNT_DETACH);
  EXPECT_EQ(server.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(server.status()),
              AllOf(HasSubstr("controlUsers: '"),
                    HasSubstr("without access control lists")));
}

}  // namespace
}  // namespace devmgr
