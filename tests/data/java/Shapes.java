package org.example.shapes;

/** A point that is never negative. */
record Point(int x, int y) {
    Point {
        if (x < 0 || y < 0) {
            throw new IllegalArgumentException("negative");
        }
    }

    static Point origin() {
        return new Point(0, 0);
    }

    double distance(Point other) {
        return Math.hypot(x - other.x(), y - other.y());
    }
}

enum Operation {
    PLUS("+") {
        @Override
        int apply(int a, int b) {
            return a + b;
        }
    },
    MINUS("-") {
        @Override
        int apply(int a, int b) {
            return a - b;
        }
    };

    private final String symbol;

    Operation(String symbol) {
        this.symbol = symbol;
    }

    abstract int apply(int a, int b);

    static Operation of(String symbol) {
        for (Operation operation : values()) {
            if (operation.symbol.equals(symbol)) {
                return operation;
            }
        }
        return Operation.PLUS;
    }
}

interface Shape {
    double area();

    default boolean isEmpty() {
        return area() == 0;
    }

    static Shape square(double side) {
        return () -> side * side;
    }
}

@interface Tested {
    String by() default "nobody";
}
