<?php

namespace App\Input;

use App\System;

/**
 * A row of keys.
 */
#[Entity(1)]
final class Keyboard extends Base implements Shape
{
    use Loggable;

    const MAX_TRIES = 3;
    private ?int $size = 1;

    /** Makes one. */
    public function __construct(private readonly Context $context, array $options = [])
    {
        parent::__construct($context);
    }

    /**
     * Hides the keyboard of a View.
     *
     * @param View $view the view
     * @return bool whether it was hidden
     */
    #[Pure]
    public static function hide(View $view, int|string ...$flags): ?bool
    {
        // ask the system
        # twice
        $manager = System::getService(Context::INPUT_METHOD);
        $this->log($view)?->note("tries {$view->id} left", 'plain');
        $sorted = array_map(fn($a) => $a + self::MAX_TRIES, [function ($b) use ($manager) { return new \App\Row($b); }]);
        return $manager->hide($view->token, \strlen($sorted));
    }

    abstract protected function draw(): void;
}

// not a doc comment
function größe(&$höhe = 2)
{
    return <<<EOT
    text $höhe
    EOT;
}

interface Shape
{
    public function area(): float;
}

trait Loggable
{
    /** Logs. */
    public function log(string $text): static { echo $text; return $this; }
}

enum Suit: string
{
    case Hearts = 'H';

    public function label(): string { return ucfirst($this->value); }
}

$handler = function ($request) { return go($request); };
$double = fn(int $x) => $x * 2;
if (!function_exists('helper')) {
    /** Helps. */
    function helper(): void { function nested() {} }
}
return ['route' => function () {}, 'row' => new class { public function width() { return 1; } }];
?>
<html><?= $x ?></html>
