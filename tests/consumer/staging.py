"""What the checks of an installed Brontes share."""
import os
import pathlib
import shutil
import subprocess
import sys


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run(command, check=True, text=True, **options)


def fails(*command, **options):
    """Runs a command that must not succeed, and gives what it printed."""
    print("+", *command, "(must fail)", flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode == 0:
        sys.exit(f"this should have failed:\n{done.stdout}")
    return done.stdout


class Prefix:
    """An installed tree, in a place that it was not configured for."""

    def __init__(self, root):
        self.root = root
        self.libdir = next(root.rglob("pkgconfig")).parent

    def copy(self, target, without=()):
        """The same tree elsewhere, without the files of these patterns."""
        shutil.copytree(self.root, target, symlinks=True)
        prefix = Prefix(target)
        for pattern in without:
            for file in prefix.libdir.glob(pattern):
                file.unlink()
        return prefix

    def pkg_config(self, *arguments):
        environment = dict(os.environ, PKG_CONFIG_LIBDIR=str(self.libdir / "pkgconfig"))
        environment.pop("PKG_CONFIG_PATH", None)
        return run("pkg-config", *arguments, env=environment, stdout=subprocess.PIPE).stdout.split()


def install(build, work):
    """Installs a build below a prefix that is not its own."""
    staging = work / "staging"
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", str(staging))
    include = next(path for path in staging.rglob("include") if (path / "brontes").is_dir())
    moved = work / "elsewhere"
    shutil.move(str(include.parent), str(moved))
    shutil.rmtree(staging)
    return Prefix(moved)


def check_links(kind, program):
    needed = run("readelf", "-d", str(program), stdout=subprocess.PIPE).stdout
    if ("[libbrontes.so" in needed) != (kind == "shared"):
        sys.exit(f"the {kind} program links to the wrong library:\n{needed}")
    if "libvulkan" in needed:
        sys.exit(f"the {kind} program links to libvulkan")


def on_lavapipe(with_driver, *command, libdir=None, **variables):
    """Runs a program; its own status is this script's if it is not 0, as 77 means that there is no driver."""
    environment = dict(os.environ, **variables)
    environment.pop("LD_LIBRARY_PATH", None)
    if libdir:
        environment["LD_LIBRARY_PATH"] = str(libdir)
    print("+", *command, flush=True)
    done = subprocess.run([with_driver, "lavapipe", "--", *map(str, command)], env=environment)
    if done.returncode != 0:
        print(f"{pathlib.Path(command[0]).name} ended with status {done.returncode}")
        sys.exit(done.returncode)
