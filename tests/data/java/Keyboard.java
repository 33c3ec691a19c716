package org.example.keys;

import android.content.Context;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/** Everything about the keyboard on the screen. */
public abstract class Keyboard<T extends Comparable<T>> extends Base implements Runnable {
    private static final int MAX_TRIES = 3;
    private static final Map<String, Integer> SIZES;

    static {
        SIZES = Map.of("small", MAX_TRIES);
    }

    private final Context context;

    /**
     * Makes one for a {@link Context}.
     *
     * @param context where it is shown
     */
    public Keyboard(Context context) {
        super(context);
        this.context = context;
    }

    public Keyboard() {
        this(null);
    }

    /**
     * Hides the soft keyboard of a {@link View}, <b>at once</b>.
     *
     * @param view the view that has the focus
     * @return true if it was hidden
     */
    @Override
    @SuppressWarnings("unchecked")
    public boolean hide(final View view) {
        // ask the system
        InputMethodManager manager = (InputMethodManager) context.getSystemService(Context.INPUT_METHOD_SERVICE);
        /* zero means no flags */
        return manager.hideSoftInputFromWindow(view.getWindowToken(), 0);
    }

    public boolean hide(View view, int tries) {
        for (int i = 0; i < MAX_TRIES; i++) {
            if (hide(view)) {
                return true;
            }
        }
        throw new IllegalStateException("not hidden after " + tries);
    }

    protected abstract void show();

    native long handle();

    <K, V extends List<K>> Map<K, V> group(V items, Supplier<? extends K> key) {
        return items.stream().collect(java.util.stream.Collectors.groupingBy(item -> key.get()));
    }

    void sort(List<String> names, String... more) {
        names.sort(String::compareTo);
        names.forEach(this::print);
        names.stream().map(StringBuilder::new).toArray(String[]::new);
    }

    void listen(Button button) {
        button.setOnClickListener(new View.OnClickListener() {
            @Override
            public void onClick(View clicked) {
                log("clicked");
            }
        });
        Runnable later = () -> button.performClick();
        later.run();
    }

    String help() {
        return """
            Press "any" key
            to go on
            """;
    }

    int days(Month month, boolean leap) {
        return switch (month) {
            case FEBRUARY -> leap ? 29 : 28;
            case APRIL, JUNE -> 30;
            default -> {
                log("long");
                yield 31;
            }
        };
    }

    double größe(double höhe) {
        return höhe * Math.PI;
    }

    private static final class Row {
        int width() {
            return 1;
        }

        class Key {
            char label() {
                return 'a';
            }
        }
    }

    void local() {
        class Counter {
            int next() {
                return 1;
            }
        }
        new Counter().next();
    }
}
