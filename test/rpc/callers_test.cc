// SPDX-License-Identifier: Apache-2.0
//
// Which process has connected, and which users may.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "common/status.h"
#include "rpc/server.h"
#include "rpc/unix_socket.h"
#include "rpc_fixture.h"
#include "support/as_nobody.h"

namespace devmgr::rpc {
namespace {

namespace fs = std::filesystem;

class CallersTest : public RpcTest {
 protected:
  absl::StatusOr<std::unique_ptr<Server>> ServeFor(const fs::path& socket,
                                                   std::vector<uid_t> users) {
    ServerOptions options;
    options.socket = socket;
    options.users = std::move(users);
    options.caller_methods["/t.Echo/Caller"] =
        [](const Caller& caller, const std::string&, const Respond& respond) {
          respond(caller.has_value()
                      ? fmt::format("{} {}", caller->uid, caller->pid)
                      : std::string("unknown"));
        };
    return Server::Start(std::move(options));
  }
};

TEST_F(CallersTest, AreNamedToMethodsThatAsk) {
  const auto server = ServeFor(Path(), {});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(CallAndWait(*Connect(), "/t.Echo/Caller", "").value(),
            fmt::format("{} {}", geteuid(), getpid()));
}

TEST_F(CallersTest, UsersWhoAreLetInMayConnectAndOthersMayNot) {
  ASSERT_EQ(::chmod(Path().parent_path().c_str(), 0755), 0);
  const auto can_connect = [this] {
    return AsNobody([this] { return ConnectUnix(Path()).ok(); });
  };
  {
    const auto server = ServeFor(Path(), {kNobody + 1});
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(can_connect(), geteuid() != 0);
  }
  const auto server = ServeFor(Path(), {kNobody, 17, kNobody});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(can_connect());
  // The permissions of the group show what users may.
  struct stat file {};
  ASSERT_EQ(::stat(Path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0660u);
}

TEST_F(CallersTest, UsersCannotBeLetInWithoutAccessControlLists) {
  const fs::path folder = Path("ram");
  fs::create_directory(folder);
  if (::mount("ramfs", folder.c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "nothing can be mounted here";
  }
  const absl::Status status = ServeFor(folder / "s.sock", {1234}).status();
  const bool left_nothing = fs::is_empty(folder);
  ::umount2(folder.c_str(), MNT_DETACH);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_NE(MessageOf(status).find("without access control lists"),
            std::string::npos);
  EXPECT_TRUE(left_nothing);
}

}  // namespace
}  // namespace devmgr::rpc
