// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl cdi, inject, resolve --cdi and --fallback, over real directories.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "shim/injection.h"
#include "support/read_all.h"
#include "support/temp_folder.h"
#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Spec(const std::string& device, const std::string& edits) {
  return "cdiVersion: 0.5.0\nkind: v.com/c\ncontainerEdits: {env: "
         "[G=secret]}\ndevices:\n- name: " +
         device + "\n  containerEdits: " + edits + "\n";
}

constexpr char kEnv[] = "{env: [A=hidden]}";
constexpr char kHook[] =
    "{hooks: [{hookName: createContainer, path: /bin/x, args: [x, arg]}]}";

class CdiCommandTest : public CommandLineTest {
 protected:
  CdiCommandTest() {
    fs::create_directory(low_);
    fs::create_directory(high_);
  }

  fs::path Write(const fs::path& file, const std::string& text) {
    std::ofstream(file) << text;
    return file;
  }
  /// With the two directories.
  std::vector<std::string> With(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(),
                     {"--cdi-spec-dir", low_, "--cdi-spec-dir", high_});
    return arguments;
  }
  Result RunCdi(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cdi");
    return Run(With(std::move(arguments)));
  }

  /// A Ready pod whose container `c` has these devices.
  void GivePod(const std::vector<std::string>& devices) {
    node_.pods = {MakePod("default", "p", PodState::kReady)};
    PodDevices answer;
    answer.name = {"default", "p"};
    answer.containers = {{"c", false, {}, {}, {}, {}, {}, {}, false}};
    for (const std::string& device : devices) {
      answer.containers[0].cdi_devices.push_back({device, {}});
    }
    answer.containers[0].env = {{"FROM_PLUGIN", "hidden", "v.com/r"}};
    node_.answer = answer;
  }

  TempFolder folder_;
  const fs::path low_ = folder_.path() / "low";
  const fs::path high_ = folder_.path() / "high";
};

TEST_F(CdiCommandTest, ListMarksWhatDoesNotCountAndWhy) {
  Write(low_ / "a.yaml", Spec("over", kEnv));
  Write(high_ / "b.yaml", Spec("over", kEnv));
  Write(low_ / "c.yaml", Spec("twice", kEnv));
  Write(low_ / "d.yaml", Spec("twice", kEnv));
  const Result result = RunCdi({"list"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(endpoints_, IsEmpty());
  const auto list = RunJson(With({"cdi", "list"}));
  EXPECT_EQ(list["kind"], "CdiDeviceList");
  ASSERT_EQ(list["items"].size(), 4u);
  EXPECT_EQ(list["items"][0]["state"], "Usable");
  EXPECT_EQ(list["items"][0]["path"], (high_ / "b.yaml").string());
  EXPECT_EQ(list["items"][1]["state"], "Shadowed");
  EXPECT_EQ(list["items"][1]["others"][0], (high_ / "b.yaml").string());
  for (const std::size_t i : {2u, 3u}) {
    EXPECT_EQ(list["items"][i]["name"], "v.com/c=twice");
    EXPECT_EQ(list["items"][i]["state"], "Conflict");
  }
  EXPECT_EQ(list["items"][2]["others"][0], (low_ / "d.yaml").string());
  EXPECT_EQ(RunCdi({"list", "-o", "name"}).out, "v.com/c=over\n");
}

TEST_F(CdiCommandTest, ListSaysWhatItLacks) {
  Write(low_ / "good.yaml", Spec("a", kEnv));
  Write(low_ / "bad.json", "{\"cdiVersion\": ");
  fs::remove(high_);
  for (const char* format : {"table", "json", "name"}) {
    const Result result = RunCdi({"list", "-o", format});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("v.com/c=a"));
    EXPECT_THAT(result.err, AllOf(HasSubstr("'" + (low_ / "bad.json").string() +
                                            "' is no valid CDI spec: "),
                                  HasSubstr("not JSON"),
                                  HasSubstr("directory '" + high_.string() +
                                            "' does not exist")));
  }
}

TEST_F(CdiCommandTest, NamesHaveTheOrderOfTheTable) {
  for (const char* name : {"g10", "g2", "g1"}) {
    Write(low_ / (std::string(name) + ".yaml"), Spec(name, kEnv));
  }
  Write(high_ / "over.yaml", Spec("g2", kEnv));
  EXPECT_EQ(RunCdi({"list", "-o", "name"}).out,
            "v.com/c=g1\nv.com/c=g2\nv.com/c=g10\n");
}

TEST_F(CdiCommandTest, AnEmptyListIsToldOnStderr) {
  const Result result = RunCdi({"list"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("No resources found"));
  EXPECT_EQ(RunJson(With({"cdi", "list"}))["items"].size(), 0u);
}

TEST_F(CdiCommandTest, DirsTellsWhatIsMissing) {
  fs::remove(high_);
  Write(low_ / "a.yaml", Spec("a", kEnv));
  const Result result = RunCdi({"dirs"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr(low_), HasSubstr("does not exist")));
  const auto list = RunJson(With({"cdi", "dirs"}));
  EXPECT_EQ(list["items"][0]["files"], 1);
  EXPECT_EQ(list["items"][1]["priority"], 1);
}

TEST_F(CdiCommandTest, ShowPrintsTheEditsOfSpecAndDevice) {
  Write(low_ / "a.yaml", Spec("a", kEnv));
  const Result result = RunCdi({"show", "v.com/c=a"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(low_ / "a.yaml"), HasSubstr("A=***"),
                                HasSubstr("G=***"), Not(HasSubstr("hidden"))));
  EXPECT_THAT(RunCdi({"show", "v.com/c=a", "--show-env"}).out,
              HasSubstr("A=hidden"));
  const auto shown = RunJson(With({"cdi", "show", "v.com/c=a"}));
  EXPECT_EQ(shown["containerEdits"]["env"][0], "A=hidden");
  EXPECT_EQ(shown["specContainerEdits"]["env"][0], "G=secret");
  const Result none = RunCdi({"show", "v.com/c=b"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("v.com/c=b"));
}

// BO-164
TEST_F(CdiCommandTest, ValidateHasALinePerFileAndFailsOnABadOne) {
  Write(low_ / "good.yaml", Spec("a", kEnv));
  EXPECT_EQ(RunCdi({"validate"}).code, 0);
  Write(low_ / "bad.yaml", "{");
  const Result result = RunCdi({"validate", "--no-headers"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2);
  EXPECT_THAT(result.out, AllOf(HasSubstr("good.yaml"), HasSubstr("bad.yaml")));
  EXPECT_EQ(result.err, "devmgrctl: 1 of 2 is bad\n");
  EXPECT_EQ(Run({"cdi", "validate", low_ / "good.yaml"}).code, 0);
  EXPECT_EQ(Run({"cdi", "validate", low_ / "bad.yaml"}).code, 1);
  EXPECT_EQ(Run({"cdi", "validate", low_}).code, 1);
  EXPECT_EQ(Run({"cdi", "validate", high_}).code, 0);
  EXPECT_EQ(Run({"cdi", "validate", folder_.path() / "none.yaml"}).code, 1);
}

TEST_F(CdiCommandTest, ValidatePrintsAPathOnce) {
  const std::string bad = Write(low_ / "bad.yaml", "kind: [");
  const std::string none = low_ / "none.yaml";
  fs::remove(high_);
  const auto count = [](const std::string& text, const std::string& path) {
    std::size_t times = 0;
    for (std::size_t at = text.find(path); at != std::string::npos;
         at = text.find(path, at + 1)) {
      ++times;
    }
    return times;
  };
  EXPECT_EQ(count(Run({"cdi", "validate", bad}).out, bad), 1u);
  EXPECT_EQ(count(Run({"cdi", "validate", bad, bad}).out, bad), 1u);
  EXPECT_EQ(count(Run({"cdi", "validate", bad, low_}).out, bad), 1u);
  EXPECT_EQ(count(Run({"cdi", "validate", low_, low_}).out, bad), 1u);
  EXPECT_EQ(count(Run({"cdi", "validate", none}).out, none), 1u);
  EXPECT_EQ(count(RunCdi({"validate"}).out, high_), 1u);
  EXPECT_EQ(count(RunCdi({"dirs"}).out, high_), 1u);
  EXPECT_THAT(RunCdi({"dirs"}).out, HasSubstr("directory does not exist"));
}

TEST_F(CdiCommandTest, ValidateFindsConflicts) {
  Write(low_ / "c.yaml", Spec("twice", kEnv));
  Write(low_ / "d.yaml", Spec("twice", kEnv));
  const Result result = RunCdi({"validate"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("v.com/c=twice"));
}

TEST_F(CdiCommandTest, MinVersionIsWhatTheContentNeeds) {
  const fs::path file = Write(low_ / "a.yaml", Spec("a", kEnv));
  EXPECT_EQ(Run({"cdi", "min-version", file}).out, "0.3.0\n");
  EXPECT_EQ(RunJson({"cdi", "min-version", file})["cdiVersion"], "0.5.0");
  EXPECT_EQ(Run({"cdi", "min-version", Write(low_ / "b.yaml", "{")}).code, 1);
  EXPECT_EQ(Run({"cdi", "min-version", folder_.path() / "none"}).code, 3);
}

/// A CDI cache that changes when the test says so.
class FakeCdiCache : public CdiCache {
 public:
  explicit FakeCdiCache(std::vector<CdiSpecFile> files)
      : registry_(std::make_shared<const CdiRegistry>(std::move(files))) {}

  std::shared_ptr<const CdiRegistry> Registry() override {
    ++asked;
    if (at_asked) at_asked();
    return registry_;
  }
  absl::Status Refresh() override { return absl::OkStatus(); }
  std::vector<CdiDirectoryInfo> Directories() const override {
    return {{"/d", 0, 1, "", watch_problem}};
  }
  void Subscribe(std::function<void()> changed) override {
    changed_ = std::move(changed);
  }
  void Unsubscribe() override { changed_ = {}; }

  void Set(std::vector<CdiSpecFile> files) {
    registry_ = std::make_shared<const CdiRegistry>(std::move(files));
    if (changed_) changed_();
  }

  int asked = 0;
  std::function<void()> at_asked;
  std::string watch_problem;

 private:
  std::shared_ptr<const CdiRegistry> registry_;
  std::function<void()> changed_;
};

// Each change is made when the one before it has been shown.
TEST_F(CdiCommandTest, WatchPrintsWhatIsThereAndThenChanges) {
  const auto replace = [this](const fs::path& file, const std::string& text) {
    Write(folder_.path() / "new", text);
    fs::rename(folder_.path() / "new", file);
  };
  replace(low_ / "a.yaml", Spec("a", kEnv));
  on_printed_ = [&] {
    switch (printed_) {
      case 1:
        return replace(high_ / "b.yaml", Spec("a", kEnv));
      case 2:
        return (void)fs::remove(high_ / "b.yaml");
      case 3:
        return replace(low_ / "a.yaml", Spec("a", "{env: [A=other]}"));
      default:
        return Pass(std::chrono::seconds(60));
    }
  };
  const Result result = RunCdi({"watch", "--timeout", "60s", "-o", "json"});
  EXPECT_EQ(result.code, 0) << result.err;
  std::vector<std::string> seen;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const auto change = nlohmann::ordered_json::parse(line);
    seen.push_back(change["type"].get<std::string>() + " " +
                   change["object"]["state"].get<std::string>());
  }
  EXPECT_THAT(seen,
              ::testing::ElementsAre("ADDED Usable", "ADDED Usable",
                                     "MODIFIED Shadowed", "DELETED Usable",
                                     "MODIFIED Usable", "MODIFIED Usable"));
  EXPECT_EQ(printed_, 4);
}

TEST_F(CdiCommandTest, WatchSleepsUntilSomethingChanges) {
  FakeCdiCache* cache = nullptr;
  std::thread other;
  open_cdi_dirs_ = [&](const CdiCacheOptions& options) {
    EXPECT_TRUE(options.watch);
    auto made = std::make_unique<FakeCdiCache>(std::vector<CdiSpecFile>{
        MakeCdiSpecFile("/d/a.yaml", 0, Spec("a", kEnv))});
    cache = made.get();
    return made;
  };
  on_printed_ = [&] {
    if (printed_ == 1) {
      // From another thread, as the cache does it.
      other = std::thread([&] {
        cache->Set({MakeCdiSpecFile("/d/a.yaml", 0, Spec("b", kEnv)),
                    MakeCdiSpecFile("/d/bad.yaml", 0, "{")});
      });
    } else {
      other.join();
      EXPECT_EQ(cache->asked, 2);
      Pass(std::chrono::seconds(60));
    }
  };
  const Result result = RunCdi({"watch", "--timeout", "60s", "--no-headers"});
  if (other.joinable()) other.join();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(printed_, 2);
  EXPECT_THAT(result.out, AllOf(HasSubstr("DELETED"), HasSubstr("v.com/c=b")));
  EXPECT_THAT(result.err, HasSubstr("/d/bad.yaml"));
}

TEST_F(CdiCommandTest, WatchLooksAgainWhereNobodyWouldTell) {
  open_cdi_dirs_ = [&](const CdiCacheOptions&) {
    auto made = std::make_unique<FakeCdiCache>(std::vector<CdiSpecFile>());
    made->watch_problem = "'/d' cannot be watched";
    made->at_asked = [this, cache = made.get()] {
      if (cache->asked == 3) Pass(std::chrono::seconds(60));
    };
    return made;
  };
  const Result result = RunCdi({"watch", "--timeout", "60s"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("cannot be watched"));
  EXPECT_EQ(printed_, 1);
}

// BO-045
TEST_F(CdiCommandTest, DirsTellsWhatCannotBeWatched) {
  open_cdi_dirs_ = [&](const CdiCacheOptions& options) {
    EXPECT_TRUE(options.watch);
    auto made = std::make_unique<FakeCdiCache>(std::vector<CdiSpecFile>());
    made->watch_problem = "'/d' cannot be watched";
    return made;
  };
  EXPECT_THAT(RunCdi({"dirs"}).out, HasSubstr("1       cannot be watched"));
  const auto list = RunJson(With({"cdi", "dirs"}));
  EXPECT_EQ(list["items"][0]["watchProblem"], "'/d' cannot be watched");
}

TEST_F(CdiCommandTest, WatchEndsByItsTimeout) {
  Write(low_ / "a.yaml", Spec("a", kEnv));
  const Result result = RunCdi({"watch", "--timeout", "1ms"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("v.com/c=a"));
}

TEST_F(CdiCommandTest, CdiWantsASubcommand) {
  EXPECT_EQ(Run({"cdi"}).code, 2);
  EXPECT_EQ(Run({"cdi", "frobnicate"}).code, 2);
  EXPECT_EQ(Run({"cdi", "show"}).code, 2);
  EXPECT_EQ(Run({"cdi", "min-version"}).code, 2);
  EXPECT_EQ(Run({"resolve", "p", "--cdi", "--fallback"}).code, 2);
  EXPECT_EQ(Run({"inject", "--pod", "p", "-c", "c"}).code, 2);
  EXPECT_EQ(Run({"inject", "--pod", "", "-c", "c", "--spec", "x"}).code, 2);
}

TEST_F(CdiCommandTest, ResolveShowsTheEditsBehindTheNames) {
  Write(low_ / "a.yaml", Spec("a", kHook));
  GivePod({"v.com/c=a"});
  const Result result = Run(With({"resolve", "p", "--cdi"}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("G=***"), HasSubstr("/bin/x arg"),
                                HasSubstr(low_ / "a.yaml")));
  const auto shown = RunJson(With({"resolve", "p", "--cdi"}));
  EXPECT_EQ(shown["kind"], "PodCdiEdits");
  const auto& edits = shown["containers"][0]["edits"];
  ASSERT_EQ(edits.size(), 2u);
  EXPECT_EQ(edits[0]["ofSpec"], true);
  EXPECT_EQ(edits[1]["containerEdits"]["hooks"][0]["path"], "/bin/x");
  GivePod({"v.com/c=a", "v.com/c=none"});
  const Result missing = Run(With({"resolve", "p", "--cdi"}));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("v.com/c=none"));
}

TEST_F(CdiCommandTest, FallbackIsPlainFields) {
  Write(low_ / "a.yaml", Spec("a", kEnv));
  GivePod({"v.com/c=a"});
  const auto shown = RunJson(With({"resolve", "p", "--fallback"}));
  EXPECT_EQ(shown["kind"], "PodCriEdits");
  const auto text = shown["containers"][0].dump();
  EXPECT_THAT(text,
              AllOf(HasSubstr("hidden"), HasSubstr("secret"),
                    HasSubstr("FROM_PLUGIN"), Not(HasSubstr("v.com/c=a"))));
}

TEST_F(CdiCommandTest, ResolveKnowsWhatPluginsNameByAnnotation) {
  Write(low_ / "a.yaml", Spec("a", kEnv));
  GivePod({});
  node_.answer->containers[0].annotations = {
      {"cdi.k8s.io/r_x", "v.com/c=a", "v.com/r"}};
  EXPECT_EQ(Run(With({"resolve", "p", "-o", "name"})).out, "v.com/c=a\n");
  const auto edits = RunJson(With({"resolve", "p", "--cdi"}));
  EXPECT_EQ(edits["containers"][0]["edits"].size(), 2u);
  const std::string plain =
      RunJson(With({"resolve", "p", "--fallback"})).dump();
  EXPECT_THAT(plain, AllOf(HasSubstr("secret"), Not(HasSubstr("cdi.k8s.io/"))));
}

// BO-165
TEST_F(CdiCommandTest, FallbackTellsAllThatCannotBeExpressed) {
  Write(low_ / "a.yaml", Spec("a", kHook));
  Write(high_ / "b.yaml",
        "cdiVersion: 1.1.0\nkind: v.com/c\ndevices:\n- name: b\n"
        "  containerEdits: {netDevices: [{hostInterfaceName: e, name: f}]}\n");
  GivePod({"v.com/c=a", "v.com/c=b"});
  const Result result = Run(With({"resolve", "p", "--fallback"}));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("v.com/c=a"), HasSubstr(low_ / "a.yaml"),
                    HasSubstr("v.com/c=b"), HasSubstr(high_ / "b.yaml")));
}

// BO-165: the words are the shim's, for edits and for names.
TEST_F(CdiCommandTest, FallbackSaysWhatTheShimWouldSay) {
  Write(low_ / "a.yaml", Spec("a", kHook));
  for (const char* device : {"v.com/c=a", "v.com/c=none"}) {
    GivePod({device});
    const auto cache = CdiCache::Open({{low_, high_}});
    ASSERT_TRUE(cache.ok());
    const auto registry = (*cache)->Registry();
    const CdiHost host = SystemCdiHost();
    shim::InjectionTarget target{RuntimeCdi::kNone, {}, *registry, host};
    target.fallback.pod = "default/p";
    target.fallback.container = "c";
    target.fallback.runtime = "containerd 1.6.33";
    target.fallback.cdi_directories = {low_, high_};
    cri::ContainerConfig config;
    config.name = "c";
    const auto plan =
        shim::PlanInjection(config, &node_.answer->containers[0], target);
    ASSERT_FALSE(plan.ok());
    const Result result =
        Run(With({"resolve", "p", "--fallback", "-r", "/run/c.sock"}));
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr(std::string(plan.status().message())));
  }
}

TEST_F(CdiCommandTest, FallbackHasThePoliciesOfTheShim) {
  Write(low_ / "a.yaml", Spec("a", kHook));
  GivePod({"v.com/c=a"});
  const std::vector<std::string> resolve = {"resolve", "p", "--fallback"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), resolve.begin(), resolve.end());
    return Run(With(more));
  };
  EXPECT_EQ(with({"--allow-hook", "y"}).code, 1);
  for (const auto& more : {std::vector<std::string>{"--allow-hook", "x"},
                           {"--inexpressible", "warn"}}) {
    const Result result = with(more);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("container 'c' of pod 'default/p'"),
                      HasSubstr("hooks left out"), HasSubstr("/bin/x")));
  }
  Write(low_ / "m.yaml",
        "cdiVersion: 0.5.0\nkind: v.com/m\ndevices:\n- name: m\n"
        "  containerEdits: {mounts: [{hostPath: /, containerPath: /m, options: "
        "[nosuid]}]}\n");
  GivePod({"v.com/m=m"});
  EXPECT_EQ(with({}).code, 1);  // BO-085
  EXPECT_EQ(with({"--mount-options"}).code, 0);
  EXPECT_EQ(with({"--inexpressible", "maybe"}).code, 2);
  EXPECT_EQ(Run({"resolve", "p", "--mount-options"}).code, 2);
}

TEST_F(CdiCommandTest, InjectEditsAConfigurationInOneStep) {
  Write(low_ / "a.yaml", Spec("a", kEnv));
  GivePod({"v.com/c=a"});
  const std::string before = R"({"process": {"env": ["A=1"]}, "x": 1})";
  const fs::path config = Write(folder_.path() / "config.json", before);
  fs::permissions(config, fs::perms{0640});
  const std::vector<std::string> inject =
      With({"inject", "--pod", "p", "-c", "c", "--spec", config});
  const Result shown = Run(inject);
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(ReadAll(config), before);
  const auto edited = nlohmann::ordered_json::parse(shown.out);
  EXPECT_EQ(edited["process"]["env"].dump(),
            R"(["A=hidden","FROM_PLUGIN=hidden","G=secret"])");
  auto to_file = inject;
  to_file.insert(to_file.end(), {"-o", config});
  EXPECT_EQ(Run(to_file).code, 0);
  EXPECT_EQ(ReadAll(config), shown.out);
  struct stat info {};
  ASSERT_EQ(::stat(config.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

// BO-050
TEST_F(CdiCommandTest, InjectIsAllOrNothing) {
  Write(low_ / "a.yaml", Spec("a", kEnv));
  GivePod({"v.com/c=a", "v.com/c=x", "v.com/c=y"});
  const fs::path config = Write(folder_.path() / "config.json", "{}");
  const Result result = Run(With(
      {"inject", "--pod", "p", "-c", "c", "--spec", config, "-o", config}));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("v.com/c=x"), HasSubstr("v.com/c=y")));
  EXPECT_EQ(ReadAll(config), "{}");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 3);
}

TEST_F(CdiCommandTest, InjectNamesWhatIsMissing) {
  GivePod({});
  const fs::path config = Write(folder_.path() / "config.json", "{}");
  const auto inject = [&](const std::string& pod, const std::string& container,
                          const std::string& spec) {
    return Run(With({"inject", "--pod", pod, "-c", container, "--spec", spec}));
  };
  EXPECT_EQ(inject("q", "c", config).code, 3);
  EXPECT_EQ(inject("p", "d", config).code, 3);
  const Result none = inject("p", "c", folder_.path() / "none.json");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("none.json"));
  EXPECT_EQ(inject("p", "c", Write(folder_.path() / "b.json", "[")).code, 1);
}

}  // namespace
}  // namespace devmgr::ctl
