# The formula of a tap; `cargo xtask dist formula` fills in what stands in braces.
class Gatelet < Formula
  desc "Small gate to any number of MCP servers"
  homepage "https://github.com/gatelet/gatelet"
  version "{{version}}"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "{{url}}/gatelet-{{version}}-aarch64-apple-darwin.tar.gz"
      sha256 "{{sha256:aarch64-apple-darwin}}"
    end
  end

  on_linux do
    on_intel do
      url "{{url}}/gatelet-{{version}}-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "{{sha256:x86_64-unknown-linux-gnu}}"
    end
    on_arm do
      url "{{url}}/gatelet-{{version}}-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "{{sha256:aarch64-unknown-linux-gnu}}"
    end
  end

  def install
    bin.install "gatelet"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/gatelet.bash" => "gatelet"
    zsh_completion.install "completions/_gatelet"
    fish_completion.install "completions/gatelet.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gatelet --version")
  end
end
