"""A small corpus for tests: source files we wrote, enough of them for fastText to learn from."""

from __future__ import annotations

from pathlib import Path

KEYBOARD = """\
package demo;

import android.app.Activity;
import android.view.inputmethod.InputMethodManager;

/** Keyboard helpers. */
public class Keyboards {
    /**
     * Hides the soft keyboard.
     */
    public static void hideSoftKeyboard(Activity activity) {
        InputMethodManager manager = (InputMethodManager) activity.getSystemService(Activity.INPUT_METHOD_SERVICE);
        manager.hideSoftInputFromWindow(activity.getCurrentFocus().getWindowToken(), 0);
    }

    /** Shows the soft keyboard. */
    public static void showSoftKeyboard(Activity activity) {
        InputMethodManager manager = (InputMethodManager) activity.getSystemService(Activity.INPUT_METHOD_SERVICE);
        manager.showSoftInput(activity.getCurrentFocus(), InputMethodManager.SHOW_IMPLICIT);
    }
}
"""

NETWORK = """\
package demo;

class Network {
    // whether there is a connection
    boolean isConnected(Context context) {
        ConnectivityManager manager = (ConnectivityManager) context.getSystemService(Context.CONNECTIVITY_SERVICE);
        NetworkInfo info = manager.getActiveNetworkInfo();
        return info != null && info.isConnected();
    }
}
"""

ASSETS = '''\
"""Reading files."""


def read_text_file(path, encoding="utf-8"):
    """Read a whole text file from disk."""
    with open(path, encoding=encoding) as file:
        return file.read()


def count_lines(path):
    """How many lines a file has."""
    return len(read_text_file(path).splitlines())


class Archive:
    def extract_all(self, target):
        """Unpack every member into the target folder."""
        for member in self.members():
            member.extract(target)
'''


def write(root: Path) -> Path:
    """Two repositories' worth of files below `root`; gives back `root`."""
    files = {
        "app/src/Keyboards.java": KEYBOARD,
        "app/src/Network.java": NETWORK,
        "tools/files.py": ASSETS,
        "copy/src/Keyboards.java": KEYBOARD,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for repository in ("app", "tools", "copy"):  # a folder with .git is a repository
        for part in ("objects", "refs"):
            (root / repository / ".git" / part).mkdir(parents=True, exist_ok=True)
        (root / repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root
